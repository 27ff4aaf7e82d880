// SPDX-License-Identifier: Apache-2.0

package policy

// While limits are hardly used nobody needs to know to the token how much, nor every call's end at once. Then an upper bound
// is reserved in place of a count, for some calls ahead in one access to the buckets (a batch), and settled a moment later
// (RATIONALE.md, "What is different while limits are hardly used?").

// A batch is what was reserved on a path ahead of the calls that will use it.
type batch struct {
	reservation Reservation // its cost is what is left
	expires     int64
}

const (
	// maxBatch is for how many calls a batch is, at most.
	maxBatch = 32

	// A batch lives until the next Flush. So a call counts as admitted up to so much too early, which the ring's slots for
	// jitter cover.
	batchLife = FlushEvery
)

// ReserveAmple takes an upper bound of the cost, if all token limits of the path are hardly used: then it makes no difference
// that the bound is too large, and the caller is spared the counting. false: nothing was taken, and Reserve must be asked
// with the exact cost.
func (l *Ledger) ReserveAmple(now int64, path *Path, bound Cost, res *Reservation) bool {
	s := &l.batches[path.hash()%uint64(len(l.batches))]
	if s.serve(now, path, bound, res) {
		return true
	}
	n := l.spareCalls(now, path, bound)
	if n == 0 {
		return false
	}
	var d Decision
	if !l.takeAll(now, path, bound.Times(n), res, &d) {
		return false
	}
	res.ample = true
	if n > 1 {
		l.giveBackBatch(now, s)
		*s = batch{*res, now + batchLife}
		s.serve(now, path, bound, res)
	}
	return true
}

// serve takes a call's cost from the batch, if it is for this path and has enough left.
func (s *batch) serve(now int64, path *Path, bound Cost, res *Reservation) bool {
	return now < s.expires && s.reservation.path.same(path) && s.reservation.Split(bound, res)
}

// Split moves a part of what a reservation holds into another, which is settled by itself; false if there is not so much left.
func (r *Reservation) Split(part Cost, to *Reservation) bool {
	if r.path.Len == 0 || !r.Cost.Covers(part) {
		return false
	}
	*to = *r
	to.Cost = part
	r.Cost = r.Cost.Minus(part)
	return true
}

// spareCalls is how many calls of the cost, up to maxBatch, all limits of the path admit and stay hardly used; 0: not even one.
// It loads the path.
func (l *Ledger) spareCalls(now int64, path *Path, cost Cost) int64 {
	n := int64(maxBatch)
	for i := range path.Len {
		s, r := &path.Steps[i], &l.loads[i]
		l.load(now, s, r)
		var d Decision
		l.check(now, s, r, &cost, false, &d)
		if d.Verdict != Admit || d.Shadow.Reason != None {
			return 0
		}
		for k := range r.meters {
			n = min(n, r.meters[k].spareCalls(max(now, r.clock), cost))
		}
		if s.Limit.InFlight > 0 {
			n = min(n, s.Limit.InFlight/8-r.inFlight(now, l.vm)-r.held.inFlight())
		}
	}
	if path.Part != nil { // a class has less than all have, so that nothing is taken ahead
		n = min(n, 1)
	}
	return max(n, 0)
}

func (s *meterState) spareCalls(now int64, cost Cost) int64 {
	u := s.unit()
	units := cost.In(u)
	if units == 0 {
		return maxBatch
	}
	n := s.spare(now) / units
	if u == Requests {
		n = max(n, 1) // one is admitted, and is counted exactly anyway
	}
	if s.ringed() && s.shape.slack() < batchLife {
		n = min(n, 1)
	}
	return n
}

// returnBatches gives back what is left of batches that are over.
func (l *Ledger) returnBatches(now int64) {
	for i := range l.batches {
		if s := &l.batches[i]; s.reservation.path.Len > 0 && now >= s.expires {
			l.giveBackBatch(now, s)
		}
	}
}

func (l *Ledger) giveBackBatch(now int64, s *batch) {
	l.Settle(now, &s.reservation, Cost{})
	*s = batch{}
}

// hash tells paths apart, mostly.
func (p *Path) hash() (h uint64) {
	for i := range p.Len {
		h = mix(h ^ uint64(p.Steps[i].Key))
	}
	return h
}

// same says whether two paths are the same buckets under the same limits.
func (p *Path) same(o *Path) bool {
	if p.Len != o.Len || p.Shadow != o.Shadow || p.Part != o.Part {
		return false
	}
	for i := range p.Len {
		if p.Steps[i].Key != o.Steps[i].Key || p.Steps[i].Tier != o.Steps[i].Tier || p.Steps[i].Limit != o.Steps[i].Limit {
			return false
		}
	}
	return true
}
