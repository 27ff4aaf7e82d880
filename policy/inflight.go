// SPDX-License-Identifier: Apache-2.0

package policy

// A heldKey names a bucket on which this worker has calls in flight: the key of its record, or which overflow record it is.
// Keys are keyed hashes, so that two that are the same by chance are not to be expected.
type heldKey uint64

// held is how many. The count in shared data is always set from it, never counted up and down, so that an update that got
// lost is put right by the next one.
type held struct {
	step  Step
	spill bool
	calls int64
}

func keyOf(s *Step, spill bool) heldKey {
	if spill {
		return heldKey(mix(uint64(s.Space.letter())<<32 | mix(uint64(s.Owner))%overflowSlots))
	}
	return heldKey(s.Key)
}

// heldOf is what this worker has in flight on a bucket; nil if the limit does not count that, or there is none yet.
func (l *Ledger) heldOf(s *Step, spill bool) *held {
	if s.Limit.InFlight == 0 {
		return nil
	}
	k := keyOf(s, spill)
	c := &l.heldCache[k%heldCacheSize]
	if c.key != k || c.held == nil {
		*c = heldEntry{k, l.held[k]}
	}
	return c.held
}

// A heldEntry is what heldOf found last at its place: most requests meet the same few buckets.
type heldEntry struct {
	key  heldKey
	held *held
}

const heldCacheSize = 64

// addCalls counts n more calls in flight on a bucket that limits them. h is what heldOf gave.
func (l *Ledger) addCalls(h *held, s *Step, spill bool, n int64) {
	if h == nil {
		if n <= 0 {
			return
		}
		h = &held{spill: spill}
		l.held[keyOf(s, spill)] = h
	}
	h.step, h.calls = *s, max(h.calls+n, 0)
}

// addHeld is addCalls for all buckets of a reservation. It fails at none, so that none is left out whatever fails later, and the
// next Renew says how many calls there are.
func (l *Ledger) addHeld(r *Reservation, n int64) {
	for i := range r.path.Len {
		if s := &r.path.Steps[i]; s.Limit.InFlight > 0 {
			l.addCalls(l.heldOf(s, r.spill[i]), s, r.spill[i], n)
		}
	}
}

// inFlight is the calls; h may be nil.
func (h *held) inFlight() int64 {
	if h == nil {
		return 0
	}
	return h.calls
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
		p := []settlement{{step: h.step, spill: h.spill}} // of nothing: it only says how many calls there are
		if l.settleStep(now, p) && h.calls == 0 {
			delete(l.held, k)
			l.heldCache[k%heldCacheSize] = heldEntry{}
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
