// SPDX-License-Identifier: Apache-2.0

package policy

// maxParked bounds the settlements that wait for another try.
const maxParked = 1024

// A parked settlement found no free moment at a bucket; Renew tries it again.
type parked struct {
	step   Step
	spill  bool
	at     int64
	was    Cost
	actual Cost
}

// Settle makes a reservation count as what the call has used, and frees its calls in flight. It does nothing the second
// time.
func (l *Ledger) Settle(now int64, res *Reservation, actual Cost) {
	for i := res.path.Len - 1; i >= 0; i-- {
		s := &res.path.Steps[i]
		l.setCalls(s, res.spill[i], l.callsOf(s, res.spill[i])-1)
		p := parked{step: *s, spill: res.spill[i], at: res.at[i], was: res.Cost, actual: actual}
		if !l.settleStep(now, &p) {
			l.park(p)
		}
	}
	res.path.Len = 0
}

// giveBack takes back what Reserve took before a later bucket refused.
func (l *Ledger) giveBack(now int64, res *Reservation) {
	l.Settle(now, res, Cost{})
}

func (l *Ledger) park(p parked) {
	if len(l.parked) < maxParked {
		l.parked = append(l.parked, p)
	}
}

// settleStep settles one bucket; false if others were faster each time.
func (l *Ledger) settleStep(now int64, p *parked) bool {
	s := &p.step
	if p.was == p.actual && s.Limit.InFlight == 0 {
		return true
	}
	r := &l.loads[0]
	for range settleTries {
		if !l.reload(now, p, r) {
			return true
		}
		t := max(now, r.clock)
		for i := range r.meters {
			m := &r.meters[i]
			u := m.dimension().Unit()
			m.settle(p.at, t, p.was.In(u), p.actual.In(u))
		}
		if s.Limit.InFlight > 0 {
			r.hold(now, l.vm, l.callsOf(s, p.spill), &l.spare)
		}
		if l.put(now, s, r) {
			return true
		}
	}
	return false
}

// reload reads the record that a reservation was taken from, as it is: by the parameters in it, not by those of the policy
// that admitted the call. If it is gone there is nothing to give back, but a charge must still be made: on a fresh one.
func (l *Ledger) reload(now int64, p *parked, r *loaded) bool {
	if p.spill {
		r.name, r.fresh, r.spill = overflowName(p.step.Tier, p.step.Owner), false, true
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
