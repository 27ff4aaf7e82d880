// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/xds"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policyfile"
)

// Status is what /api/status says.
type Status struct {
	Ready    bool         `json:"ready"`
	NotReady string       `json:"not_ready,omitempty"` // why
	Started  time.Time    `json:"started"`
	Listen   string       `json:"listen"`           // where Envoys take requests
	Filter   string       `json:"filter,omitempty"` // hash of the filter that belongs to this control plane
	File     string       `json:"file"`
	Policy   *PolicyInfo  `json:"policy"` // null: none yet
	Problem  *FileProblem `json:"problem,omitempty"`
	Nodes    []xds.Status `json:"nodes"`
	Fleet    fleet.Status `json:"fleet"`
	Unknown  string       `json:"fleet_unknown,omitempty"` // why nothing is known of Fleet here and now
	Lead     Leadership   `json:"lead"`                    // who hands out the limits of the fleet
	Store    string       `json:"store,omitempty"`         // where central limits and the fleet's state are kept
	Access   AccessInfo   `json:"access"`

	StoreAway string `json:"store_away,omitempty"` // why it does not answer

	Switch
	Grants []Grant `json:"grants,omitempty"`
}

// A Switch is the one for everything, as an admin has left it.
type Switch struct {
	Enforce string    `json:"enforce"` // on: the policy's own modes hold; shadow or off: an admin's word does, for all
	Since   time.Time `json:"enforce_since,omitzero"`
	By      string    `json:"enforce_by,omitempty"`
}

// AccessInfo is about who may ask.
type AccessInfo struct {
	TLS     bool       `json:"tls"`
	Asks    bool       `json:"asks"`              // everybody is asked who they are
	Expires *time.Time `json:"expires,omitempty"` // the control plane's certificate
	Problem string     `json:"problem,omitempty"` // what is wrong with the files as they are now; the old ones are in force
}

func (s *Server) accessInfo() AccessInfo {
	g := s.config.Access
	i := AccessInfo{TLS: g.Encrypts(), Asks: g.Asks(), Problem: g.Problem()}
	if end := g.Expires(); !end.IsZero() {
		i.Expires = &end
	}
	return i
}

// PolicyInfo is about the policy that is served.
type PolicyInfo struct {
	Version  string              `json:"version"`
	LoadedAt time.Time           `json:"loaded_at"`
	Mode     string              `json:"mode"`
	Notices  []policyfile.Notice `json:"notices"`
}

// FileProblem is what is wrong with the file as it is now.
type FileProblem struct {
	At      time.Time           `json:"at"`
	Message string              `json:"message"`
	Errors  []*policyfile.Error `json:"errors,omitempty"` // those that have a place in the file
}

// Status gives the state of everything.
func (s *Server) Status() Status { return s.statusOf((*fleet.Controller).Status) }

// errNotLeading is why a replica that does not lead shows no limits.
var errNotLeading = errors.New("another control plane hands out the limits of the fleet, and knows them")

// statusOf gives the state of everything, with the limits of the fleet that quotas gives.
func (s *Server) statusOf(quotas func(*fleet.Controller, context.Context) (fleet.Status, error)) Status {
	err := s.ready()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	shared, ferr := fleet.Status{}, errNotLeading
	if c := s.leading(); c != nil {
		shared, ferr = quotas(c, ctx)
	}
	if ferr != nil {
		shared = fleet.Status{Quotas: []fleet.Quota{}, Changes: []fleet.Change{}, Denials: []fleet.Denied{}, Reasons: []fleet.Denied{}, Waits: []fleet.Waiting{}}
	}
	said, lead := s.said(), s.leadership()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		Ready: err == nil, Started: s.started, Listen: s.config.Listen, Filter: s.config.WasmHash, File: s.config.PolicyFile,
		Problem: s.problem, Nodes: s.xds.Nodes(), Fleet: shared, Lead: lead, Access: s.accessInfo(),
		Switch: Switch{said.Enforce, said.Since, said.By}, Grants: said.Grants,
	}
	if s.config.Store != nil {
		st.Store, st.StoreAway = s.config.Store.String(), s.away
	}
	if ferr != nil {
		st.Unknown = ferr.Error()
	}
	if err != nil {
		st.NotReady = err.Error()
	}
	if l := s.loaded; l != nil {
		st.Policy = &PolicyInfo{
			Version: l.version, LoadedAt: l.at, Mode: l.result.Policy.Mode.String(),
			Notices: append([]policyfile.Notice{}, l.result.Notices...),
		}
	}
	return st
}

// policy gives the policy that is served; nil: none yet.
func (s *Server) policy() *policy.Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded == nil {
		return nil
	}
	return s.loaded.result.Policy
}

// Nodes gives the state of the Envoys.
func (s *Server) Nodes() []xds.Status { return s.xds.Nodes() }

// ready says why this server is not ready.
func (s *Server) ready() error {
	s.mu.Lock()
	loaded, problem := s.loaded, s.problem
	s.mu.Unlock()
	switch {
	case loaded == nil && problem != nil:
		return fmt.Errorf("no policy: %s", problem.Message)
	case loaded == nil:
		return errors.New("no policy yet")
	case s.config.Ready != nil:
		return s.config.Ready()
	}
	return nil
}
