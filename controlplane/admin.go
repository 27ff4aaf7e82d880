// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weirproxy/weir/controlplane/access"
	"github.com/weirproxy/weir/policy"
)

// What an admin may say, at the status address. [Server.guard] has asked before who it is.

// Paths of what an admin may say.
const (
	EnforcePath = "/api/enforce"
	GrantsPath  = "/api/grants"
)

// An Enforcement is the switch, as it is asked for and answered.
type Enforcement struct {
	Enforce string `json:"enforce"`
	Mode    string `json:"mode,omitempty"` // of the policy that holds now
	Kept    bool   `json:"kept"`           // a restart of the control plane does not forget it

	Since time.Time `json:"since,omitzero"` // as weir enforce shows it
	By    string    `json:"by,omitempty"`
}

// A GrantRequest asks for a grant.
type GrantRequest struct {
	Tenant string       `json:"tenant"`
	Limit  string       `json:"limit"`
	Add    policy.Count `json:"add"`
	For    float64      `json:"for_s"`
}

// A Granted is the answer to it.
type Granted struct {
	Grant
	Kept bool `json:"kept"` // a restart of the control plane does not forget it
}

func (s *Server) adminRoutes(m *http.ServeMux) {
	m.HandleFunc("POST "+EnforcePath, s.serveEnforce)
	m.HandleFunc("POST "+GrantsPath, s.serveGrant)
	m.HandleFunc("DELETE "+GrantsPath, s.serveGrantEnd)
}

func (s *Server) serveEnforce(w http.ResponseWriter, r *http.Request) {
	var q Enforcement
	if !readAdmin(w, r, &q) {
		return
	}
	if q.Enforce != EnforceOn && q.Enforce != EnforceShadow && q.Enforce != EnforceOff {
		http.Error(w, "enforce is on, shadow or off", http.StatusBadRequest)
		return
	}
	err := s.say(r.Context(), func(o *overlay) error { o.turn(q.Enforce, who(r), time.Now()); return nil })
	if adminFailed(w, err) {
		return
	}
	q = Enforcement{Enforce: q.Enforce}
	s.log.Warn("enforce", "to", q.Enforce, "by", who(r))
	q.Kept = s.config.Store != nil
	s.mu.Lock()
	if s.loaded != nil {
		q.Mode = s.loaded.result.Policy.Mode.String()
	}
	s.mu.Unlock()
	s.answer(w, q)
}

func (s *Server) serveGrant(w http.ResponseWriter, r *http.Request) {
	var q GrantRequest
	if !readAdmin(w, r, &q) {
		return
	}
	now := time.Now().Truncate(time.Millisecond).UTC()
	g := Grant{Tenant: q.Tenant, Limit: q.Limit, Add: q.Add, By: who(r), At: now}
	if q.For > 0 && q.For <= maxGrantTime.Seconds() {
		g.Until = now.Add(time.Duration(q.For * float64(time.Second)))
	}
	if err := g.check(now); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if adminFailed(w, s.say(r.Context(), func(o *overlay) error {
		if len(o.Grants) >= maxGrants {
			return refusedError{fmt.Errorf("there are %d grants already", maxGrants)}
		}
		o.Grants = append(o.Grants, g)
		only := overlay{Enforce: EnforceOn, Grants: []Grant{g}}
		if s.over.file == nil {
			return refusedError{errors.New("no policy yet")}
		}
		_, err := only.over(s.over.file)
		return refused(err)
	})) {
		return
	}
	s.log.Warn("grant", "limit", g.Limit, "add", int64(g.Add), "until", g.Until, "by", g.By, "tenant", s.fingerprint(g.Tenant))
	s.answer(w, Granted{g, s.config.Store != nil})
}

// serveGrantEnd ends all grants of a tenant.
func (s *Server) serveGrantEnd(w http.ResponseWriter, r *http.Request) {
	tenant, ended := r.URL.Query().Get("tenant"), []Grant{}
	if adminFailed(w, s.say(r.Context(), func(o *overlay) error {
		var left []Grant
		for _, g := range o.Grants {
			if g.Tenant == tenant {
				ended = append(ended, g)
			} else {
				left = append(left, g)
			}
		}
		if o.Grants = left; len(ended) == 0 {
			return refusedError{fmt.Errorf("tenant %s has no grant", tenant)}
		}
		return nil
	})) {
		return
	}
	s.log.Warn("grants ended", "number", len(ended), "by", who(r), "tenant", s.fingerprint(tenant))
	s.answer(w, ended)
}

// fingerprint stands for a tenant in the log, which has no names.
func (s *Server) fingerprint(tenant string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded == nil {
		return ""
	}
	return fmt.Sprintf("%016x", uint64(s.loaded.result.Policy.Hasher.Key(policy.TierTenant, tenant)))
}

// who names who asks, for the log.
func who(r *http.Request) string {
	id, _ := r.Context().Value(identityKey{}).(access.Identity)
	return id.Name()
}

// A refusedError is one of who asked.
type refusedError struct{ error }

func refused(err error) error {
	if err == nil {
		return nil
	}
	return refusedError{err}
}

// maxAdmin is the most bytes of what an admin says.
const maxAdmin = 4 << 10

func readAdmin(w http.ResponseWriter, r *http.Request, to any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAdmin))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		http.Error(w, "no JSON as it should be: "+err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

// adminFailed answers what could not be done.
func adminFailed(w http.ResponseWriter, err error) bool {
	var mine refusedError
	switch {
	case err == nil:
		return false
	case errors.As(err, &mine):
		http.Error(w, err.Error(), http.StatusConflict)
	default:
		http.Error(w, "nothing was changed: "+err.Error(), http.StatusServiceUnavailable)
	}
	return true
}

func (s *Server) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.log.Debug("answer", "error", err)
	}
}

// say changes what an admin has said, keeps it, and gives it to all Envoys.
func (s *Server) say(ctx context.Context, change func(*overlay) error) error {
	s.over.saying.Lock()
	defer s.over.saying.Unlock()
	o, err := s.keep(ctx, change)
	if err != nil {
		return err
	}
	s.over.mu.Lock()
	defer s.over.mu.Unlock()
	s.over.said.Store(&o)
	s.over.n++
	s.apply(context.WithoutCancel(ctx))
	s.board.hurry()
	return nil
}
