// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/weirproxy/weir/controlplane"
	"github.com/weirproxy/weir/controlplane/access"
)

// requireLoopback refuses addresses that other machines can reach.
func requireLoopback(addrs ...string) error { return requireSafe(nil, addrs...) }

// requireSafe refuses addresses of a control plane that anybody can reach.
func requireSafe(g *access.Guard, addrs ...string) error {
	for _, a := range addrs {
		if err := controlplane.RequireSafe(a, g); err != nil {
			var open *controlplane.OpenError
			if errors.As(err, &open) {
				return usagef("%w (%s)", err, open.Hint())
			}
			return usageError{err}
		}
	}
	return nil
}

// listen listens on an address, and says which flag to change if it is taken.
func listen(addr, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use: end what listens there, or choose another address with %s", addr, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s (%s): %w", addr, flag, err)
	}
	return l, nil
}

// statusFlag says where the status page is.
type statusFlag struct {
	// Two by default: scripts know 10080, but browsers open no page there (https://fetch.spec.whatwg.org/#port-blocking).
	Status []string `help:"Addresses of the status page; browsers refuse port 10080." default:"127.0.0.1:10088,127.0.0.1:10080"`
}

// listenAll listens on all addresses, or on none.
func (f statusFlag) listenAll() (all []net.Listener, err error) {
	for _, a := range f.Status {
		l, err := listen(a, "--status")
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

func closeAll(all []net.Listener) {
	for _, l := range all {
		l.Close()
	}
}

// freeAddress says whether Envoy will be able to listen on an address: its own error would come late and in a log.
func freeAddress(addr string) error {
	l, err := listen(addr, "--listen")
	if err != nil {
		return err
	}
	return l.Close()
}

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, server *http.Server, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() {
		wait, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if server.Shutdown(wait) != nil {
			server.Close()
		}
	})
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
