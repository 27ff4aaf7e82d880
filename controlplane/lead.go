// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/store"
)

// Only one control plane of a fleet hands out its limits at a time. Without a store it is this one; with a store it is the one that
// leads there.
//
//	Envoy ──report──> any replica ──channel "reports"──> the one that leads: fleet.Controller
//	Envoy <──xDS───── any replica <──channel "documents"────────┘
//
// A replica that does not lead grants nothing. It passes on what Envoys report and what the controller has for them, and does not look
// into either. So nothing that it does, or does late, or does not do, is more to the protocol than the network is: a message may be lost,
// late or doubled anyway, and what an Envoy takes is decided by epoch, version and number in the message itself. An Envoy's reports may
// go to another replica than its stream, and either may change at any time.
//
// Safety so rests on three things. The store gives epochs that only grow. A controller does nothing after its term
// (fleet.Config.Holds), and none begins before every term before it is over (store.Campaign). What is to outlive a controller is saved
// before an Envoy hears of it, and the store refuses what is not of the newest term.

// leadLease is for how long a leader can be gone before the next one is. Twice that and a second, until it grants, is less than
// a share's ten seconds: a fail-over is over before Envoys fall to their floors.
const leadLease = 3 * time.Second

const leads = "fleet" // what is led

// A lead says who hands out the limits of the fleet. It belongs to Server.mu.
type lead struct {
	controller *fleet.Controller // nil: not this one
	leader     string            // who does, as far as this one knows; empty: nobody
	since      time.Time         // of that
}

// Leadership is who hands out the limits of the fleet.
type Leadership struct {
	Name     string     `json:"name"`             // of this replica
	Leads    bool       `json:"leads"`            // it is this one
	Leader   string     `json:"leader,omitempty"` // who it is; empty: nobody, as far as this one knows
	Epoch    uint64     `json:"epoch,omitempty"`  // of that one, as far as it has been heard of
	Since    *time.Time `json:"since,omitempty"`
	Replicas []string   `json:"replicas"` // others that have been heard of within the last seconds
}

// leading gives the controller, if this replica leads.
func (s *Server) leading() *fleet.Controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lead.controller
}

// setLead takes down who leads.
func (s *Server) setLead(c *fleet.Controller, leader string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lead.controller != c || s.lead.leader != leader {
		s.lead = lead{c, leader, time.Now()}
	}
}

// leadership says who leads.
func (s *Server) leadership() Leadership {
	s.mu.Lock()
	l := s.lead
	s.mu.Unlock()
	i := Leadership{Name: s.config.Name, Leads: l.controller != nil, Leader: l.leader, Since: &l.since, Replicas: s.peers.names()}
	switch {
	case i.Leads:
		i.Epoch = l.controller.Epoch()
	case l.leader != "":
		i.Epoch = s.peers.controller()
	default:
		i.Since = nil
	}
	return i
}

// share has the limits of the fleet handed out, by this replica or another one, until ctx ends.
func (s *Server) share(ctx context.Context) error {
	if s.config.Store == nil {
		return s.alone(ctx)
	}
	var meeting sync.WaitGroup
	defer meeting.Wait()
	if shared, ok := s.config.Store.(store.Shared); ok {
		meeting.Go(func() { s.meet(ctx, shared) })
	}
	store.Campaign(ctx, s.config.Store, store.Candidate{
		Name: leads, Who: s.config.Name, Lease: s.config.Lease, Log: s.log, Lead: s.term, Looked: s.looked,
	})
	return nil
}

// alone leads where no store says who does.
func (s *Server) alone(ctx context.Context) error {
	kept := s.config.Fleet
	if kept == nil {
		kept = fleet.NewVolatile(false)
	}
	c, err := s.newController(kept, s.push, nil)
	if err != nil {
		return err
	}
	s.govern(ctx, c)
	return nil
}

// looked takes down what a look at the store has shown.
func (s *Server) looked(err error) {
	away, leader := "", ""
	var held *store.HeldError
	if errors.As(err, &held) {
		leader = held.Candidate()
	} else if err != nil {
		away = err.Error()
	}
	s.storeAway(away)
	if s.leading() == nil {
		s.setLead(nil, leader)
	}
}

// term leads for one term.
func (s *Server) term(ctx context.Context, term func() store.Term) {
	ctx, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	push := s.push
	shared, isShared := s.config.Store.(store.Shared)
	out := newOutgoing()
	if isShared {
		push = func(documents map[string][]byte) { s.push(documents); s.pushElsewhere(documents, out) }
	}
	c, err := s.newController(keeper{ctx, s.config.Store, term, s.config.Fresh}, push, func() bool { t := term(); return t.Holds() })
	if err != nil {
		s.log.Error("this control plane cannot lead", "error", err)
		return
	}
	if isShared {
		parts.Go(func() { s.hearReports(ctx, shared, c) })
		parts.Go(func() { s.send(ctx, shared, c.Epoch(), out) })
	}
	s.govern(ctx, c)
}

func (s *Server) newController(kept fleet.Store, push func(map[string][]byte), holds func() bool) (*fleet.Controller, error) {
	return fleet.New(fleet.Config{
		Store: kept, Logger: s.log, Push: push, Holds: holds,
		Connected: func() int { return s.xds.NodeCount() + s.peers.nodes() },
	})
}

// govern has a controller work until ctx ends, or until it must not.
func (s *Server) govern(ctx context.Context, c *fleet.Controller) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { defer cancel(); c.Run(ctx) })
	s.setLead(c, s.config.Name)
	s.applyPolicy(ctx)
	running.Wait()
	s.setLead(nil, "")
}

// applyPolicy has the controller take the policy that is loaded, if there is either.
func (s *Server) applyPolicy(ctx context.Context) {
	s.applying.Lock() // the newest is applied last
	defer s.applying.Unlock()
	s.mu.Lock()
	c, l := s.lead.controller, s.loaded
	s.mu.Unlock()
	if c != nil && l != nil {
		_ = c.SetPolicy(ctx, l.result.Policy, l.result.Spec) // or it is over
	}
}

// push sends Envoys here their documents.
func (s *Server) push(documents map[string][]byte) {
	for node, b := range documents {
		s.xds.Push(node, b)
	}
}

// pushElsewhere has Envoys at other replicas sent theirs. One may seem to be here, because its stream has ended without a word.
func (s *Server) pushElsewhere(documents map[string][]byte, out *outgoing) {
	for node, b := range documents {
		if !s.xds.Connected(node) || s.peers.has(node) {
			out.put(node, b)
		}
	}
}
