// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/weirproxy/weir/controlplane/access"
	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/controlplane/watch"
	"github.com/weirproxy/weir/controlplane/xds"
	"github.com/weirproxy/weir/policyfile"
)

// A Server is a control plane.
type Server struct {
	config  Config
	log     *slog.Logger
	xds     *xds.Server
	id      string // unlike any other replica's, and any other process's before
	peers   peers  // other replicas
	board   *board
	limiter limiter // of reports
	over    overrides
	started time.Time

	applying sync.Mutex     // is held while the controller takes a policy; taken before mu
	telling  sync.WaitGroup // policies that the controller is to take

	mu      sync.Mutex
	lead    lead
	loaded  *loaded      // the last good policy; nil: none yet
	problem *FileProblem // what is wrong with the file now; nil: nothing
	loads   int64        // policies that were taken
	fails   int64        // that were not
	away    string       // why the store does not answer; empty: it did, when last asked
}

// A loaded is a policy that is served.
type loaded struct {
	result  *policyfile.Result
	version string
	at      time.Time
}

// New makes a server.
func New(c Config) (*Server, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Access == nil {
		var err error
		if c.Access, err = access.New(access.Files{}, c.Logger); err != nil {
			return nil, fmt.Errorf("control plane: %w", err)
		}
	}
	if c.Name == "" {
		c.Name, _ = os.Hostname()
	}
	if c.Lease == 0 {
		c.Lease = leadLease
	}
	s := &Server{
		config: c, log: c.Logger, id: rand.Text(), limiter: limiter{nodes: map[string]*allowance{}}, peers: peers{all: map[string]*peer{}},
		started: time.Now(),
	}
	s.board = newBoard(s)
	s.over.said.Store(&overlay{Enforce: EnforceOn})
	security := xds.Security{TLS: c.Access.TLS("h2"), Allow: c.Access.AllowNode}
	s.xds = xds.New(xds.Options{WasmHash: c.WasmHash, Logger: c.Logger, Security: security})
	return s, nil
}

// Run works until ctx ends, or until it cannot: then it says why. It leaves nothing behind.
func (s *Server) Run(ctx context.Context) error {
	defer s.telling.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.lookAdmin(ctx) // before the first policy goes out
	parts := []func(context.Context) error{
		s.follow,
		s.followAdmin,
		s.share,
		s.serveStatus,
		s.config.Access.Run,
		s.board.run,
		func(ctx context.Context) error { return s.xds.Serve(ctx, s.config.XDS) },
	}
	errs := make(chan error, len(parts))
	for _, part := range parts {
		go func() {
			err := part(ctx)
			cancel() // none works without the others
			errs <- err
		}()
	}
	var all []error
	for range parts {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func (s *Server) follow(ctx context.Context) error {
	w := &watch.Watcher{Path: s.config.PolicyFile, Every: s.config.Poll, Changed: func(r *policyfile.Result, err error) { s.changed(ctx, r, err) }}
	w.Run(ctx)
	return nil
}

// changed takes a policy that is new, or notes what is wrong with it.
func (s *Server) changed(ctx context.Context, r *policyfile.Result, err error) {
	if err == nil && s.config.Shares {
		r, err = r.Shared()
	} else if err == nil && s.config.Reports {
		r, err = r.Reported()
	}
	if err == nil {
		// Tried once before it goes to any node: what cannot be translated is the policy's fault like any other.
		_, err = s.translate(r, xds.Node{Wasm: "weir-00000000.wasm"})
	}
	if err != nil {
		s.failed(err)
	} else {
		s.adopt(ctx, r)
	}
	s.board.hurry()
}

func (s *Server) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails++
	s.problem = &FileProblem{At: time.Now(), Message: err.Error(), Errors: policyfile.Errors(err)}
	s.log.Error("policy not taken", "file", s.config.PolicyFile, "error", err, "kept", s.loaded != nil)
}

// take makes a policy the one that is served, and says whether it is another one.
func (s *Server) take(r *policyfile.Result) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem = nil
	v := translate.Version(r.JSON)
	if s.loaded != nil && s.loaded.version == v {
		s.loaded.result = r // its notices may have moved
		return false
	}
	s.loads++
	s.loaded = &loaded{result: r, version: v, at: time.Now()}
	s.log.Info("policy taken", "file", s.config.PolicyFile, "version", v)
	for _, n := range r.Notices {
		if s.loads > 1 { // those of the first policy are for who starts the program to show
			s.log.Info("notice", "about", n.String())
		}
	}
	return true
}

func (s *Server) translate(r *policyfile.Result, n xds.Node) (*translate.Set, error) {
	ca := n.CAFile
	if ca == "" {
		ca = s.config.CAFile
	}
	return translate.Resources(translate.Input{
		Spec: r.Spec, Policy: r.JSON, BodyCap: r.Policy.MostHeld(),
		Listen: s.config.Listen, Wasm: n.Wasm, CAFile: ca, Upstream: s.config.Upstream,
	})
}

func (s *Server) serveStatus(ctx context.Context) error {
	h := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, len(s.config.Status))
	for _, l := range s.config.Status {
		if c := s.config.Access.TLS("http/1.1"); c != nil {
			l = tls.NewListener(l, c)
		}
		go func() { failed <- h.Serve(l) }()
	}
	select {
	case err := <-failed:
		return fmt.Errorf("status: %w", err)
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if h.Shutdown(late) != nil {
		h.Close()
	}
	for range s.config.Status {
		<-failed
	}
	return nil
}
