// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	func_e "github.com/tetratelabs/func-e"
	"github.com/tetratelabs/func-e/api"
)

// Options says how an Envoy is run.
type Options struct {
	Bootstrap    []byte        // YAML or JSON; needs an admin address, which may have port 0
	Path         string        // of the binary; default: Find, and if there is none a download of Version by func-e
	Concurrency  int           // worker threads; 0: Envoy's own choice
	Args         []string      // more flags
	Log          io.Writer     // gets Envoy's output; nil: nowhere
	LogLevel     string        // default warning
	Logger       *slog.Logger  // for what this package has to say; nil: nowhere
	StartTimeout time.Duration // until it is ready; default 30s, of which a download is no part
}

// Run starts an Envoy and waits until it is ready. It ends when ctx does.
func Run(ctx context.Context, o Options) (*Process, error) {
	p, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.StartTimeout, 30*time.Second))
	defer cancel()
	if err := p.Ready(ctx); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Start starts an Envoy and waits until its admin address answers, which is before its configuration has come. It ends when
// ctx does.
func Start(ctx context.Context, o Options) (*Process, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	path, err := binary(ctx, &o)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weir-envoy-")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "envoy.yaml"), o.Bootstrap, 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p := newProcess()
	go p.run(o.args(dir), o.funcE(path, dir, p.tail), dir)
	if err := p.awaitAdmin(ctx, adminPath(dir)); err != nil {
		p.Stop()
		return nil, err
	}
	context.AfterFunc(ctx, func() { p.Stop() })
	return p, nil
}

// binary gives the path of the Envoy to run; empty: func-e has to download one. It warns of versions that are not tested.
func binary(ctx context.Context, o *Options) (string, error) {
	path := o.Path
	if path == "" {
		var err error
		if path, err = Find(); errors.Is(err, ErrNotFound) {
			o.Logger.Warn("no Envoy here, downloading one", "version", Version, "hint", err.Error())
			return "", nil
		} else if err != nil {
			return "", err
		}
	}
	v, err := VersionOf(ctx, path)
	if err != nil {
		return "", err
	}
	if !SameMinor(v, Version) {
		o.Logger.Warn("this Envoy is not the one that weir is tested with", "path", path, "version", v, "tested", Version)
	}
	return path, nil
}

func adminPath(dir string) string { return filepath.Join(dir, "admin") }

func (o *Options) args(dir string) []string {
	args := []string{
		"--config-path", filepath.Join(dir, "envoy.yaml"),
		"--admin-address-path", adminPath(dir),
		"--log-level", cmp.Or(o.LogLevel, "warning"),
		"--disable-hot-restart", // or two Envoys on one machine would meet in shared memory
	}
	if o.Concurrency > 0 {
		args = append(args, "--concurrency", strconv.Itoa(o.Concurrency))
	}
	return append(args, o.Args...)
}

// funcE keeps whatever func-e writes in a directory of this run, except a downloaded Envoy, which the next run can use.
func (o *Options) funcE(path, dir string, tail *tail) []api.RunOption {
	out := io.MultiWriter(cmp.Or[io.Writer](o.Log, io.Discard), tail)
	options := []api.RunOption{
		api.ConfigHome(dir), api.StateHome(dir), api.RuntimeDir(dir),
		api.EnvoyVersion(Version), api.EnvoyOut(out), api.EnvoyErr(out), api.Out(logWriter{o.Logger}),
	}
	if path != "" {
		options = append(options, api.EnvoyPath(path), api.DataHome(dir))
	}
	return options
}

// A logWriter makes log lines of func-e's messages.
type logWriter struct{ *slog.Logger }

func (w logWriter) Write(b []byte) (int, error) {
	w.Debug("func-e", "says", string(bytes.TrimSpace(b)))
	return len(b), nil
}

// run runs Envoy to its end.
func (p *Process) run(args []string, options []api.RunOption, dir string) {
	transport := newTransport()
	defer close(p.done)
	defer transport.CloseIdleConnections()
	err := func_e.Run(p.ctx, args, append(options, api.HTTPTransport(transport))...)
	switch {
	case p.told.Load():
		// Whatever func-e says of an Envoy that ends before func-e has seen it ready is no news.
		err = nil
	case err != nil:
		err = fmt.Errorf("envoy: %w%s", err, p.tail.lines())
	}
	p.err = errors.Join(err, os.RemoveAll(dir))
}
