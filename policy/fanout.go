// SPDX-License-Identifier: Apache-2.0

package policy

// An agent that is about to send several calls at once reserves the sum of them first, or learns how many would fit: half a
// fan-out is of no use to it (RATIONALE.md, "Why is a fan-out all or nothing?").

// ReserveFanout takes the cost of n calls from all buckets of the path, or from none. Refused for now, it says in
// Decision.Fits how many would be admitted, at least 0 and less than n; the reason is then FanoutRefused, with the limit that
// decides. Branches are taken from the reservation by [Reservation.Split]; who holds it must give back what no branch has
// taken, by settling it at cost 0. [Ledger.OpenFanout] does so by itself.
func (l *Ledger) ReserveFanout(now int64, path *Path, each Cost, n int64, res *Reservation) Decision {
	d := l.Reserve(now, path, each.Times(max(n, 0)), res)
	if d.Verdict != Deny || d.Refusal.Reason == CASContention {
		return d
	}
	d.Fits = l.fits(now, path, each, n)
	d.Refusal.Reason = FanoutRefused
	return d
}

// fits is the largest number of calls, less than n, that the path admits at once. It only looks.
func (l *Ledger) fits(now int64, path *Path, each Cost, n int64) int64 {
	for i := range path.Len {
		l.load(now, &path.Steps[i], &l.loads[i])
	}
	low, high := int64(0), max(n, 1)
	for low+1 < high { // what admits k calls admits fewer
		k := low + (high-low)/2
		cost := each.Times(k)
		var d Decision
		for i := range path.Len {
			l.check(now, &path.Steps[i], &l.loads[i], &cost, path.Shadow, &d)
		}
		path.checkPart(now, &cost, &d)
		if d.Verdict == Admit {
			low = k
		} else {
			high = k
		}
	}
	return low
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

// A FanoutID names an open fan-out to all workers. Whoever knows it may take a branch, so it must be random.
type FanoutID [16]byte

// OpenFanout is ReserveFanout for branches that may come to any worker, until ttl ns from now; then what none has taken comes
// back. With too many open ones it is refused like one that meets others all the time.
func (l *Ledger) OpenFanout(now int64, id FanoutID, path *Path, each Cost, n, ttl int64) Decision {
	var res Reservation
	d := l.ReserveFanout(now, path, each, n, &res)
	if d.Verdict != Admit {
		return d
	}
	open := openFanout{id: id, reservation: res, expires: now + ttl}
	if !l.publish(now, &open) {
		l.Settle(now, &res, Cost{})
		d.Verdict, d.Refusal = Deny, Refusal{Reason: CASContention, Wait: inFlightWait}
		return d
	}
	l.fanouts = append(l.fanouts, open)
	return d
}

// JoinFanout takes the part of one branch from an open fan-out; false if it is not open any more, was reserved for another
// caller, or has not so much left: then the branch is a call like any other.
func (l *Ledger) JoinFanout(now int64, id FanoutID, path *Path, cost Cost, res *Reservation) bool {
	var f fanoutRecord
	for range maxTries {
		name, cas, found := l.findFanout(id, &f)
		if !found || now >= f.expires || f.path != path.hash() || int(f.steps) != path.Len || !f.left.Covers(cost) {
			return false
		}
		f.left = f.left.Minus(cost)
		if !l.store.Set(name.str(), f.bytes(), cas) {
			continue
		}
		*res = Reservation{Cost: cost, path: *path, at: f.at, spill: f.spill}
		for i := range path.Len {
			l.holdMore(now, &path.Steps[i], f.spill[i], cost.Requests)
		}
		return true
	}
	return false
}

// holdMore counts more calls of this worker in flight on a bucket, without taking anything.
func (l *Ledger) holdMore(now int64, s *Step, spill bool, n int64) {
	if s.Limit.InFlight > 0 {
		l.addCalls(l.heldOf(s, spill), s, spill, n)
		l.settleNow(now, settlement{step: *s, spill: spill})
	}
}

// lookAfterFanouts lets go of what branches have taken over at other workers, and gives back what none has taken in time.
func (l *Ledger) lookAfterFanouts(now int64) {
	rest := l.fanouts[:0]
	for i := range l.fanouts {
		if o := &l.fanouts[i]; l.lookAfter(now, o) {
			rest = append(rest, *o)
		}
	}
	clear(l.fanouts[len(rest):])
	l.fanouts = rest
}

func (l *Ledger) lookAfter(now int64, o *openFanout) (open bool) {
	var f fanoutRecord
	name, cas, found := l.findFanout(o.id, &f)
	if !found { // all of it was taken
		f.left = Cost{}
	}
	held := &o.reservation
	if taken := held.Cost.Minus(f.left); taken.Requests > 0 {
		for i := range held.path.Len {
			l.holdMore(now, &held.path.Steps[i], held.spill[i], -taken.Requests)
		}
	}
	held.Cost = f.left
	if now < o.expires && f.left.Requests > 0 {
		return true
	}
	f = fanoutRecord{layout: fanoutLayout}
	if found && !l.store.Set(name.str(), f.bytes(), cas) {
		return true // a branch came just now: look again
	}
	l.Settle(now, held, Cost{})
	return false
}
