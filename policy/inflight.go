// SPDX-License-Identifier: Apache-2.0

package policy

// A heldKey names a bucket on which this worker has calls in flight.
type heldKey struct {
	tier  Tier
	spill bool
	key   Key
}

// held is how many. The count in shared data is always set from it, never counted up and down, so that an update that got
// lost is put right by the next one.
type held struct {
	step  Step
	calls int64
}

func keyOf(s *Step, spill bool) heldKey {
	if spill {
		return heldKey{s.Tier, true, Key(s.Space.letter())<<32 | Key(mix(uint64(s.Owner))%overflowSlots)}
	}
	return heldKey{s.Tier, false, s.Key}
}

// callsOf is how many calls this worker has in flight on a bucket.
func (l *Ledger) callsOf(s *Step, spill bool) int64 {
	if s.Limit.InFlight == 0 {
		return 0
	}
	if h := l.held[keyOf(s, spill)]; h != nil {
		return h.calls
	}
	return 0
}

func (l *Ledger) setCalls(s *Step, spill bool, calls int64) {
	if s.Limit.InFlight == 0 {
		return
	}
	k := keyOf(s, spill)
	h := l.held[k]
	if h == nil {
		h = new(held)
		l.held[k] = h
	}
	h.step, h.calls = *s, max(calls, 0)
}

// RenewEvery is how often, in ns, Renew must be called.
const RenewEvery = slotLease / 3

// Renew says that this worker's calls in flight are still there, and settles what had to wait. Who stops calling it loses
// its slots when their lease ends.
func (l *Ledger) Renew(now int64) {
	l.Flush(now)
	waiting := l.parked
	l.parked = nil
	for _, p := range waiting {
		l.settleNow(now, p)
	}
	for k, h := range l.held {
		p := []settlement{{step: h.step, spill: k.spill}} // of nothing: it only says how many calls there are
		if l.settleStep(now, p) && h.calls == 0 {
			delete(l.held, k)
		}
	}
}

// InFlight is how many calls this worker has in flight, each counted once for every bucket that limits it.
func (l *Ledger) InFlight() (n int64) {
	for _, h := range l.held {
		n += h.calls
	}
	return n
}
