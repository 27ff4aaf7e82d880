// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxLimiters bounds the models (and keys) with limits of their own; the rest
// share one, because callers choose the names.
const maxLimiters = 10_000

// Server is the mock provider, an http.Handler. It does not listen by itself;
// see Listen.
type Server struct {
	mode     Mode
	perKey   bool
	models   []string
	settings atomic.Pointer[settings]
	setMu    sync.Mutex // held while settings are replaced

	clock func() time.Time
	start time.Time

	limMu    sync.RWMutex
	limiters map[string]*limiter

	rngMu sync.Mutex
	rng   *rand.Rand

	ledger *ledger
	lower  *memo
	masked *memo
	seq    atomic.Uint64
}

// New makes a mock from its configuration.
func New(c Config) (*Server, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("mock: %w", err)
	}
	s := &Server{
		mode: c.Mode, perKey: c.PerKey, models: slices.Clone(c.Models),
		clock: c.Now, start: c.Now(),
		limiters: map[string]*limiter{},
		rng:      rand.New(rand.NewPCG(c.Seed, 0)),
		ledger:   newLedger(c.Events),
		lower:    newMemo(strings.ToLower),
		masked:   newMemo(MaskKey),
	}
	s.settings.Store(c.settings())
	return s, nil
}

// now is the time in unix nanoseconds. It counts from the start by the monotonic
// clock, so that a step of the wall clock does not move a window.
func (s *Server) now() int64 {
	return s.start.UnixNano() + int64(s.clock().Sub(s.start))
}

// Reset empties the ledger and fills all limits up. Settings stay; calls in
// flight go on but no longer count.
func (s *Server) Reset() {
	s.limMu.Lock()
	s.limiters = map[string]*limiter{}
	s.limMu.Unlock()
	s.ledger.reset()
}

// limiter finds the state of a model, or of a model and key.
func (s *Server) limiter(model, key string) *limiter {
	name := model
	if s.perKey {
		name = key + "\x00" + model
	}
	s.limMu.RLock()
	l, ok := s.limiters[name]
	s.limMu.RUnlock()
	if ok {
		return l
	}
	s.limMu.Lock()
	defer s.limMu.Unlock()
	if len(s.limiters) >= maxLimiters {
		name = "\x00(other)"
	}
	if l, ok = s.limiters[name]; !ok {
		l = newLimiter(s.mode)
		s.limiters[name] = l
	}
	return l
}

// ServeHTTP answers the mock's own paths, and everything else as a provider. It
// panics with http.ErrAbortHandler where a call asks for a broken connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stats":
		s.serveStats(w, r)
	case "/reset":
		s.serveReset(w, r)
	case "/control":
		s.serveControl(w, r)
	case "/healthz":
		writeJSON(w, http.StatusOK, []byte(`{"ok":true}`))
	default:
		s.serveProvider(w, r)
	}
}

// serveProvider settles the method before anything is counted.
func (s *Server) serveProvider(w http.ResponseWriter, r *http.Request) {
	ep := findEndpoint(r)
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", ep.allow())
		w.WriteHeader(http.StatusNoContent)
		return
	}
	c := newCall(s, w, r, ep)
	defer c.free()
	if !ep.allows(r.Method) {
		w.Header().Set("Allow", ep.allow())
		c.fail(failure{status: http.StatusMethodNotAllowed, message: "method " + r.Method + " is not allowed here"})
		return
	}
	c.serve()
}
