// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"

	"github.com/weirproxy/weir/policy"
)

// branchHeader is where a branch of a fan-out says what it was reserved as.
const branchHeader = "x-weir-reservation"

// join takes a branch's part of the fan-out that it names. false: it is sent again and had its part, it is none of this caller, or no
// more is left for it; then it is a request like any other.
func (s *Stream) join(now int64, a *asker, path *policy.Path, cost policy.Cost) bool {
	name, n := s.headerOf(branchHeader)
	id, ok := fanoutID(name)
	joined := ok && n == 1 && !s.repeat && s.vm.ledger.JoinFanout(now, id, a.owner(), path, cost, &s.reservation)
	m := &s.vm.metrics
	if joined {
		s.vm.count(&m.joined, metricBranches, "source", "reservation")
	} else {
		s.vm.count(&m.unjoined, metricBranches, "source", "limits")
	}
	return joined
}

// fanoutID reads the 32 hex digits of a fan-out.
func fanoutID(name string) (id policy.FanoutID, ok bool) {
	if len(name) != 2*len(id) {
		return id, false
	}
	for i := range id {
		b, err := strconv.ParseUint(name[2*i:2*i+2], 16, 8)
		if err != nil {
			return id, false
		}
		id[i] = byte(b)
	}
	return id, true
}
