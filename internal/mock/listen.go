// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	// Envoy opens one HTTP/2 connection for each worker and puts everything on it.
	maxStreams = 10_000
	// shutdownGrace is how long open calls may go on after the end was asked for.
	shutdownGrace = 2 * time.Second
)

// HTTPServer is an http.Server for the mock: HTTP/1.1 and cleartext HTTP/2 on
// the same port.
func (s *Server) HTTPServer() *http.Server {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           s,
		Protocols:         p,
		ReadHeaderTimeout: time.Minute,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
}

// Listen opens addr and makes the server for it; the caller calls Serve, and
// Close or Shutdown. Port 0 takes a free one: ask the listener.
func (s *Server) Listen(addr string) (net.Listener, *http.Server, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("mock: %w", err)
	}
	return ln, s.HTTPServer(), nil
}

// ListenAndServe serves on addr until ctx ends.
func (s *Server) ListenAndServe(ctx context.Context, addr string) error {
	ln, srv, err := s.Listen(addr)
	if err != nil {
		return err
	}
	return serveUntil(ctx, ln, srv)
}

func serveUntil(ctx context.Context, ln net.Listener, srv *http.Server) error {
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	select {
	case err := <-done:
		return fmt.Errorf("mock: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		srv.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("mock: %w", err)
	}
	return nil
}
