// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/weirproxy/weir/policy/stable"
)

// A settlement makes one reservation count as what was used, on one bucket.
type settlement struct {
	step   Step
	spill  bool
	at     int64
	was    Cost
	actual Cost
}

func (p *settlement) sameBucket(o *settlement) bool {
	return p.step.Key == o.step.Key && p.step.Space == o.step.Space && p.spill == o.spill
}

// maxParked bounds the settlements that found no free moment at a bucket and wait for Renew to try again.
const maxParked = 1024

// Settle makes a reservation count as what the call has used, and frees its calls in flight. It does nothing the second
// time. What was reserved amply is settled at the next [Ledger.Flush]: until then it holds back a part of limits that are
// hardly used, and one access to a bucket settles many calls.
func (l *Ledger) Settle(now int64, res *Reservation, actual Cost) {
	l.addHeld(res, -res.Cost.Requests)
	n := res.path.Len
	res.path.Len = 0 // whatever fails from here on, it is not settled again
	for i := n - 1; i >= 0; i-- {
		s := &res.path.Steps[i]
		p := settlement{step: *s, spill: res.spill[i], at: res.at[i], was: res.Cost, actual: actual}
		switch {
		case p.was == p.actual && s.Limit.InFlight == 0:
		case res.ample:
			l.later = append(l.later, p)
		default:
			l.settleNow(now, p)
		}
	}
	if part := res.path.Part; part != nil {
		res.path.Part = nil
		part.Settle(now, res.Cost, actual)
	}
	if len(l.later) >= flushAt && !l.flushing {
		l.Flush(now)
	}
}

func (l *Ledger) settleNow(now int64, p ...settlement) {
	if !l.settleStep(now, p) {
		l.park(p)
	}
}

// FlushEvery is how often, in ns, Flush must be called; flushAt is after how many settlements it calls itself.
const (
	FlushEvery = int64(20e6)
	flushAt    = 256
)

// Flush gives back batches that are over, and settles what was left for later, all of a bucket at once.
func (l *Ledger) Flush(now int64) {
	l.flushing = true
	defer func() { l.flushing = false }()
	l.returnBatches(now)
	l.lookAfterFanouts(now)
	if len(l.later) == 0 {
		return
	}
	l.order = l.order[:0]
	for i := range l.later {
		l.order = append(l.order, int32(i))
	}
	stable.Sort(l.order, func(a, b *int32) bool { // and not settlements: they are large
		s, t := &l.later[*a].step, &l.later[*b].step
		return s.Key < t.Key || s.Key == t.Key && s.Tier < t.Tier
	})
	for rest := l.order; len(rest) > 0; {
		first, n := &l.later[rest[0]], 0
		l.batch = l.batch[:0]
		for n < len(rest) && l.later[rest[n]].sameBucket(first) {
			l.batch = append(l.batch, l.later[rest[n]])
			n++
		}
		l.settleNow(now, l.batch...)
		clear(l.batch) // lets go of limits
		rest = rest[n:]
	}
	clear(l.later)
	l.later = l.later[:0]
}

// giveBack takes back what Reserve took before a later bucket refused.
func (l *Ledger) giveBack(now int64, res *Reservation) {
	l.Settle(now, res, Cost{})
}

func (l *Ledger) park(p []settlement) {
	if len(l.parked)+len(p) <= maxParked {
		l.parked = append(l.parked, p...)
	}
}

// settleStep settles calls of one bucket; false if others were faster each time.
func (l *Ledger) settleStep(now int64, calls []settlement) bool {
	first := &calls[0]
	s := &first.step
	r := &l.loads[0]
	for range settleTries {
		if !l.reload(now, first, r) {
			return true
		}
		t := max(now, r.clock)
		for i := range calls {
			r.settle(t, &calls[i])
		}
		if s.Limit.InFlight > 0 {
			r.hold(now, l.vm, l.heldOf(s, first.spill).inFlight(), &l.spare)
		}
		if l.put(now, s, r) {
			return true
		}
	}
	return false
}

func (r *record) settle(now int64, p *settlement) {
	for i := range r.meters {
		m := &r.meters[i]
		u := m.unit()
		m.settle(p.at, now, p.was.In(u), p.actual.In(u))
	}
}

// reload reads the record that a reservation was taken from, as it is: by the parameters in it, not by those of the policy
// that admitted the call. If it is gone there is nothing to give back, but a charge must still be made: on a fresh one.
func (l *Ledger) reload(now int64, p *settlement, r *loaded) bool {
	if p.spill {
		r.name, r.fresh, r.spill = p.step.Space.overflowName(p.step.Owner), false, true
		return l.get(r)
	}
	there := l.find(now, &p.step, r)
	r.fresh = !there && !r.spill
	if there && !r.spill {
		return true
	}
	if p.actual.In(Tokens) <= p.was.In(Tokens) {
		return false
	}
	if !there {
		r.init(now, uint64(p.step.Key), p.step.Limit)
	}
	return true
}
