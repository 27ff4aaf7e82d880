// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/controlplane"
	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/internal/mock"
)

// stackOptions say what a stack is made of.
type stackOptions struct {
	policyFile string
	listen     string
	status     statusFlag
	workers    int
	mock       *mock.Config // behind every upstream; nil: the real ones
	log        *slog.Logger
	envoyLog   io.Writer
}

// A stack is control plane, Envoy and filter on this machine, and perhaps a mock provider.
type stack struct {
	proxy, status, admin, mockAddr string // host:port
	mock                           *mock.Server

	ready  atomic.Bool
	envoy  *envoy.Process
	closes []func()
	failed chan error // what ended a part that should not have ended
}

// startTimeout is how long Envoy may take until it serves: it compiles the filter first, which takes seconds on a busy
// machine.
const startTimeout = 3 * time.Minute

// startStack starts all parts and waits until a request would be decided. What it returns must be closed; after an error
// it has closed everything itself.
func startStack(ctx context.Context, o stackOptions) (*stack, error) {
	s := &stack{failed: make(chan error, 4)}
	if err := s.start(ctx, o); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *stack) start(ctx context.Context, o stackOptions) error {
	if err := freeAddress(o.listen); err != nil {
		return err
	}
	status, err := o.status.listenAll()
	if err != nil {
		return err
	}
	s.onClose(func() { closeAll(status) })
	xds, err := listen("127.0.0.1:0", "xDS")
	if err != nil {
		return err
	}
	s.onClose(func() { xds.Close() })
	dir, err := os.MkdirTemp("", "weir-")
	if err != nil {
		return err
	}
	s.onClose(func() { os.RemoveAll(dir) })
	wasm, hash, err := writeWasm(dir)
	if err != nil {
		return err
	}
	if err := s.startMock(ctx, o); err != nil {
		return err
	}
	server, err := controlplane.New(controlplane.Config{
		PolicyFile: o.policyFile, XDS: xds, Status: status, Listen: o.listen, WasmHash: hash, Upstream: s.mockAddr,
		Logger: o.log, Ready: s.readiness, Admin: s.adminOnceReady, Reports: true, Fleet: fleet.NewVolatile(true),
	})
	if err != nil {
		return err
	}
	s.status = status[0].Addr().String()
	s.background(ctx, "the control plane", server.Run)
	return s.startEnvoy(ctx, o, xds.Addr().String(), wasm)
}

func (s *stack) readiness() error {
	if !s.ready.Load() {
		return errors.New("envoy does not serve yet")
	}
	return nil
}

// adminOnceReady is where Envoy's metrics are, once they are there.
func (s *stack) adminOnceReady() string {
	if !s.ready.Load() {
		return ""
	}
	return s.admin
}

// startMock starts the mock provider, if there is to be one.
func (s *stack) startMock(ctx context.Context, o stackOptions) error {
	if o.mock == nil {
		return nil
	}
	m, err := mock.New(*o.mock)
	if err != nil {
		return err
	}
	l, server, err := m.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	s.mock, s.mockAddr = m, l.Addr().String()
	s.background(ctx, "the mock provider", func(ctx context.Context) error { return serveUntil(ctx, server, l) })
	return nil
}

func (s *stack) startEnvoy(ctx context.Context, o stackOptions, xds, wasm string) error {
	bootstrap, err := envoy.Bootstrap(envoy.BootstrapOptions{NodeID: "local", XDSAddr: xds, Control: s.status, WasmPath: wasm})
	if err != nil {
		return err
	}
	s.envoy, err = envoy.Run(ctx, envoy.Options{
		Bootstrap: bootstrap, Concurrency: o.workers, Log: o.envoyLog, Logger: o.log, StartTimeout: startTimeout,
		Args: []string{"--component-log-level", "wasm:info"}, // or the policy's log: {admit: info} would show nothing
	})
	if err != nil {
		return err
	}
	s.onClose(func() { s.envoy.Stop() })
	s.admin = s.envoy.Admin
	if s.proxy, err = s.envoy.Listener(ctx, "weir"); err != nil {
		return err
	}
	if err := awaitFilter(ctx, s.proxy, max(o.workers, 1)); err != nil {
		return err
	}
	s.ready.Store(true)
	go func() {
		<-s.envoy.Done()
		s.failed <- fmt.Errorf("envoy ended: %w", errors.Join(s.envoy.Wait(), errors.New("see its output")))
	}()
	return nil
}

// awaitFilter asks on new connections until the filter answers on as many as there are workers, and more.
func awaitFilter(ctx context.Context, proxy string, workers int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	for answered := 0; answered < 2*workers; {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+proxy+"/.weir/ready", nil)
		if err != nil {
			return err
		}
		r, err := client.Do(request)
		if err == nil {
			r.Body.Close()
			if r.Header.Get("x-weir-decision") != "" {
				answered++
				continue
			}
		}
		answered = 0
		select {
		case <-ctx.Done():
			return fmt.Errorf("the filter does not answer on %s: %w", proxy, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// background runs a part until the stack is closed.
func (s *stack) background(ctx context.Context, name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			s.failed <- fmt.Errorf("%s ended: %w", name, err)
		}
	}()
	s.onClose(func() { cancel(); <-done })
}

func (s *stack) onClose(f func()) { s.closes = append(s.closes, f) }

// Wait waits until ctx ends, or until a part does.
func (s *stack) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
}

// Close ends all parts, the last one first.
func (s *stack) Close() {
	for i := len(s.closes) - 1; i >= 0; i-- {
		s.closes[i]()
	}
	s.closes = nil
}
