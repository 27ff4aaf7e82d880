// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"maps"
	"slices"
	"strings"
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// Status is what is known of one Envoy: connected, or refused a short time ago.
type Status struct {
	ID      string    `json:"id"`
	Cluster string    `json:"cluster"`
	Envoy   string    `json:"envoy"`
	Wasm    string    `json:"wasm"`
	Since   time.Time `json:"since"`
	Refused string    `json:"refused,omitempty"` // why it gets nothing
	Problem string    `json:"problem,omitempty"` // why it does not get the newest policy
	Notes   []string  `json:"notes,omitempty"`   // what is odd about it
	Policy  string    `json:"policy,omitempty"`  // version of the policy that it has accepted
	Types   []Type    `json:"types,omitempty"`
}

// Type is what an Envoy made of one type of resources.
type Type struct {
	Name    string     `json:"name"`
	Sent    string     `json:"sent"`
	Acked   string     `json:"acked,omitempty"`
	AckedAt *time.Time `json:"acked_at,omitempty"`
	NACK    *NACK      `json:"nack,omitempty"` // the last
}

// Rejected says that the Envoy has rejected the newest version.
func (t *Type) Rejected() bool { return t.NACK != nil && t.NACK.Version == t.Sent && t.Acked != t.Sent }

// A NACK is the rejection of a version.
type NACK struct {
	Version string    `json:"version"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

var names = map[string]string{
	resourcev3.ListenerType:        "listener",
	resourcev3.RouteType:           "route",
	resourcev3.ClusterType:         "cluster",
	resourcev3.ExtensionConfigType: "filter",
	sharesType:                     "shares",
}

// Types are the types of resources by the names that [Type] and the counts of NACKs have.
func Types() []string { return slices.Sorted(maps.Values(names)) }

func name(typ string) string {
	if n, ok := names[typ]; ok {
		return n
	}
	return typ
}

// NACKs counts the configurations that were rejected since the start, by type.
func (s *Server) NACKs() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.nacks)
}

// Nodes gives the state of all Envoys by id.
func (s *Server) Nodes() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes := s.refusals()
	for _, st := range s.streams {
		if !st.whole && len(st.types) > 0 {
			continue
		}
		nodes = append(nodes, st.status())
	}
	slices.SortFunc(nodes, func(a, b Status) int {
		if c := strings.Compare(a.ID, b.ID); c != 0 {
			return c
		}
		return a.Since.Compare(b.Since)
	})
	for i := 1; i < len(nodes); i++ {
		if nodes[i].ID == nodes[i-1].ID {
			nodes[i].Notes = append(slices.Clip(nodes[i].Notes), "another connection has the same node id")
		}
	}
	return nodes
}

func (st *stream) status() Status {
	n := Status{
		ID: st.node.ID, Cluster: st.node.Cluster, Envoy: st.node.Version, Wasm: st.node.Wasm,
		Since: st.since, Problem: st.problem, Notes: st.notes,
		Policy: st.policies[st.state(resourcev3.ExtensionConfigType).Acked],
	}
	for _, typ := range slices.Sorted(maps.Keys(st.types)) {
		state := st.types[typ]
		t := Type{Name: name(typ), Sent: state.Sent, Acked: state.Acked, NACK: state.NACK}
		if !state.AckedAt.IsZero() {
			t.AckedAt = new(state.AckedAt) // a copy: the stream goes on
		}
		n.Types = append(n.Types, t)
	}
	return n
}
