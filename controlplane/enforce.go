// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/controlplane/xds"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policyfile"
)

// What an admin says holds over what the file says: one switch for everything, and grants. Neither is written into the file.

// The switch, as weir enforce has it.
const (
	EnforceOn     = "on"     // the policy's own modes hold
	EnforceShadow = "shadow" // limits only watch
	EnforceOff    = "off"    // nothing is counted, nothing is refused
)

// An overlay is what an admin has said. It does not change: another one takes its place.
type overlay struct {
	Enforce string    `json:"enforce"`
	Since   time.Time `json:"since,omitzero"` // of Enforce
	By      string    `json:"by,omitempty"`   // who said that
	Grants  []Grant   `json:"grants,omitempty"`
}

// turn turns the switch. Who turns it to where it is has changed nothing.
func (o *overlay) turn(to, by string, at time.Time) {
	if o.Enforce != to {
		o.Enforce, o.By, o.Since = to, by, at.Truncate(time.Millisecond).UTC()
	}
}

func (o *overlay) equal(p *overlay) bool {
	return o.Enforce == p.Enforce && o.Since.Equal(p.Since) && slices.EqualFunc(o.Grants, p.Grants, func(a, b Grant) bool { return a == b })
}

// at is what of it still holds.
func (o *overlay) at(now time.Time) overlay {
	left := *o
	left.Grants = nil
	for _, g := range o.Grants {
		if now.Before(g.Until) {
			left.Grants = append(left.Grants, g)
		}
	}
	return left
}

// over makes the policy that holds of what a file says. The error names the first grant that does nothing; the others hold.
func (o *overlay) over(r *policyfile.Result) (*policyfile.Result, error) {
	if o.Enforce == EnforceOn && len(o.Grants) == 0 {
		return r, nil
	}
	spec, err := policy.Decode(r.JSON)
	if err != nil {
		return nil, err
	}
	switch o.Enforce {
	case EnforceShadow:
		spec.Mode = max(spec.Mode, policy.Shadow)
	case EnforceOff:
		spec.Mode = policy.Off
	}
	var idle error
	for _, g := range o.Grants {
		if err := g.add(spec); err != nil && idle == nil {
			idle = err
		}
	}
	p, err := policy.Compile(spec)
	if err != nil {
		return nil, fmt.Errorf("with the grants: %w", err)
	}
	json, err := policy.Encode(spec)
	if err != nil {
		return nil, err
	}
	return &policyfile.Result{Spec: spec, Policy: p, JSON: json, Notices: r.Notices}, idle
}

// overrides is what the file says and what an admin says, and the lock under which they become one policy. Who has that does not wait
// for the store, but storePatience.
type overrides struct {
	saying sync.Mutex // is held while what an admin says is written down; taken before mu
	mu     sync.Mutex
	file   *policyfile.Result // the last good one; nil: none yet
	said   atomic.Pointer[overlay]
	first  atomic.Bool // the store has failed once
	n      int         // how often an admin has said something here
}

// adopt takes a file's policy, which is good.
func (s *Server) adopt(ctx context.Context, r *policyfile.Result) {
	s.over.mu.Lock()
	defer s.over.mu.Unlock()
	if was := s.over.file; was != nil {
		s.tellChanges(policyfile.Diff(was, r))
	}
	s.over.file = r
	if !s.apply(ctx) {
		s.log.Info("the policy says what it said before", "file", s.config.PolicyFile)
	}
}

// storePatience is how long Envoys wait for a policy so that the controller has it first. It may be waiting for its store, and they
// must not: that has nothing to do with what the policy says.
const storePatience = time.Second

// tellController has the controller take the policy that is loaded, now or as soon as it can.
func (s *Server) tellController(ctx context.Context) {
	told := make(chan struct{})
	s.telling.Go(func() {
		defer close(told)
		s.applyPolicy(ctx)
	})
	select {
	case <-told:
	case <-time.After(storePatience):
		s.log.Warn("the policy goes to Envoys before the fleet's limits are handed out by it: whoever does that waits for the store")
	}
}

// maxTold bounds the changes of a policy that the log tells one by one.
const maxTold = 50

// tellChanges logs what a new policy says differently.
func (s *Server) tellChanges(all []policyfile.Change) {
	for i, c := range all {
		if i == maxTold {
			s.log.Info("policy changed", "more", len(all)-i)
			return
		}
		s.log.Info("policy changed", "field", c.Path, "was", c.Was, "is", c.Is)
	}
}

// apply gives all Envoys the policy that holds now, and says whether it is another one. The lock is held.
func (s *Server) apply(ctx context.Context) bool {
	if s.over.file == nil {
		return false
	}
	r, err := s.over.said.Load().over(s.over.file)
	if err != nil {
		s.log.Warn("a grant does nothing", "error", err)
	}
	if r == nil {
		r = s.over.file
	}
	if !s.take(r) {
		return false
	}
	s.tellController(ctx)
	s.xds.Update(func(n xds.Node) (*translate.Set, error) { return s.translate(r, n) })
	return true
}

// said is what an admin has said, for the status.
func (s *Server) said() overlay {
	return s.over.said.Load().at(time.Now())
}
