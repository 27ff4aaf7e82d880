// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"maps"
	"time"
)

const (
	// rememberRefused is how long a refused Envoy is shown after its last attempt. They try every few seconds.
	rememberRefused = time.Minute

	// maxRefused bounds how many are shown: whoever can connect can make up names.
	maxRefused = 100

	// tellRefused is how long another reason of the same Envoy is not logged.
	tellRefused = 5 * time.Second
)

// A refusal is an Envoy that was refused.
type refusal struct {
	node        Node
	reason      string
	first, last time.Time
	told        time.Time // when it was logged
}

// refuse takes down a refusal, and logs it when it is new.
func (s *Server) refuse(n Node, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetRefused()
	r := s.refused[n.ID]
	now := time.Now()
	switch {
	case r == nil && len(s.refused) >= maxRefused:
		if now.Sub(s.crowded) > rememberRefused {
			s.crowded = now
			s.log.Error("more Envoys are refused than are named here", "named", maxRefused)
		}
		return
	case r == nil, r.reason != reason.Error() && now.Sub(r.told) > tellRefused:
		s.log.Error("Envoy refused", "node", n.ID, "reason", reason)
		first := now
		if r != nil {
			first = r.first
		}
		r = &refusal{node: n, reason: reason.Error(), first: first, told: now}
		s.refused[n.ID] = r
	}
	r.last = now
}

func (s *Server) forgetRefused() {
	maps.DeleteFunc(s.refused, func(_ string, r *refusal) bool { return time.Since(r.last) > rememberRefused })
}

func (s *Server) refusals() []Status {
	s.forgetRefused()
	var all []Status
	for _, r := range s.refused {
		all = append(all, Status{
			ID: r.node.ID, Cluster: r.node.Cluster, Envoy: r.node.Version, Wasm: r.node.Wasm, Since: r.first, Refused: r.reason,
		})
	}
	return all
}
