// SPDX-License-Identifier: Apache-2.0

package filter

import "github.com/weirproxy/weir/policy"

// dropTake gives back what a stream holds here and has asked for, if it was not sent.
func (s *Stream) dropTake(now int64) {
	if s.take == nil {
		return
	}
	s.vm.ledger.Settle(now, &s.reservation, policy.Cost{})
	s.endTake(now, policy.Cost{})
}

// endTake makes the take count as what the call has used, once.
func (s *Stream) endTake(now int64, actual policy.Cost) {
	t := s.take
	if t == nil {
		return
	}
	s.take = nil
	if t.open {
		t.close()
	}
	t.stream = nil
	s.vm.ledger.Settle(now, &t.floor, actual)
	if t.there {
		t.there = false
		s.vm.owe(now, t.id, actual)
	}
}

// abandon is for a stream that goes before it was sent.
func (s *Stream) abandon() {
	if s.take == nil || s.phase != waiting {
		return
	}
	s.dropTake(s.vm.host.Now())
}

// lateTakes ends what was asked too long ago: its answer was lost with the one whose callback it was asked in. It must be called in
// a tick, with no stream entered.
func (v *VM) lateTakes(now int64) {
	for t := range v.centrals.takes {
		if now-t.asked < int64(takeLate) {
			continue
		}
		s := t.stream
		if t.w.attempt != 0 { // it is gone, or would have had its answer; the next one finds what it needs here
			t.close()
			s.vm.ledger.Settle(now, &s.reservation, policy.Cost{})
			v.owe(now, t.id, policy.Cost{})
			t.there = false
			continue
		}
		v.turning, v.effective = nil, 0
		t.enter()
		t.resolve(t.failed)
		v.turning, v.effective = nil, s.id
	}
}
