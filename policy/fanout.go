// SPDX-License-Identifier: Apache-2.0

package policy

// An agent that is about to send several calls at once reserves the sum of them first, or learns how many would fit: half a
// fan-out is of no use to it (RATIONALE.md, "Why is a fan-out all or nothing?").

// ReserveFanout takes the cost of n calls from all buckets of the path, or from none. Refused for now, it says in
// Decision.Fits how many would be admitted, at least 0 and less than n; the reason is then FanoutRefused, with the limit that
// decides. Branches are taken from the reservation by [Reservation.Split]; who holds it must give back what no branch has
// taken, by settling it at cost 0.
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
		var d Decision
		for i := range path.Len {
			l.check(now, &path.Steps[i], &l.loads[i], each.Times(k), path.Shadow, &d)
		}
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
