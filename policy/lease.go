// SPDX-License-Identifier: Apache-2.0

package policy

// Terms are what an Envoy may spend of a limit that a fleet shares.
type Terms struct {
	Rate  int64 // units per window
	Burst int64 // units
	Cap   int64 // units in any window; for a continuous limit it means nothing
}

// A Stage is how far a lease has run.
type Stage int64

// Stages.
const (
	NoLease Stage = iota // there never was a grant, or the floor is forgotten
	Leased
	Floored
)

// A Lease is what an Envoy holds of a meter that a fleet shares, and for how long. Package fleet has the protocol.
type Lease struct {
	Epoch, Version uint64 // of the grant that it comes from
	Stage          Stage
	Terms          Terms // in force
	Until          int64 // ns: end of the lease
	Floor          Terms // in force after it
	FloorUntil     int64 // ns: until then
	Returned       int64 // units of level given back on shrinks, in sum over a life of the Envoy
	Tight          bool
}

// Lapse brings the lease to its next stage, if it has come to that by now. at is since when the terms of that are in force.
func (l *Lease) Lapse(now int64) (at int64, changed bool) {
	switch {
	case l.Stage == Leased && now >= l.Until:
		l.Stage, l.Terms, l.Tight = Floored, l.Floor, false
		return l.Until, true
	case l.Stage == Floored && now >= l.FloorUntil:
		l.Stage, l.Terms = NoLease, Terms{}
		return l.FloorUntil, true
	}
	return 0, false
}

// A shareMode is how an Envoy gets its part of a meter.
type shareMode int64

const (
	unshared shareMode = iota // nothing is known yet
	rated                     // it holds a lease on a part of the rate
	lent                      // it is lent the units of one call at a time
	drawn                     // it draws chunks of what does not refill
)

// A share is the part of a fleet's meter that lies with this Envoy, in the meter's state: so it binds all workers at once, and a
// lease ends by itself, whatever became of whoever took it.
type share struct {
	mode   shareMode
	whole  int64 // units that the policy says
	lease  Lease // of what is lent and drawn only Until counts, and Returned
	closed int64 // ns: since when the bucket stands still, for there is no rate; 0: it does not
	spent  int64 // units that were taken, in sum
	given  int64 // units lent or drawn, in sum over a life of the Envoy
	used   int64 // of them
	dry    int64 // ns: until then there is known to be no more to draw
}

// shared says whether the meter is one of a fleet.
func (s *meterState) shared() bool { return s.id>>idShared&1 != 0 }

// have is what is left of units that were lent or drawn.
func (h *share) have(now int64) int64 {
	if now >= h.lease.Until {
		return 0
	}
	return max(h.given-h.used-h.lease.Returned, 0)
}

// lackWait is what a caller is told to wait for what only a controller can give.
const lackWait = int64(1e9)

// shareWait is the time after which n units may be admitted. lacks: no time helps, but more from the controller.
func (s *meterState) shareWait(now, n int64) (wait int64, lacks bool) {
	if n > s.share.whole {
		return forever, false
	}
	switch s.share.mode {
	case rated:
		return s.ratedWait(now, n)
	case lent:
		lacks = s.share.have(now) < n
	case drawn:
		if wait = s.counter.wait(now, n, &s.rate); wait > 0 {
			return wait, false
		}
		if lacks = s.share.have(now) < n; lacks && s.share.dry > now {
			return s.counter.left(now, &s.rate), false
		}
	default:
		lacks = true
	}
	if lacks {
		return lackWait, true
	}
	return 0, false
}

func (s *meterState) ratedWait(now, n int64) (wait int64, lacks bool) {
	if s.share.closed > 0 {
		return lackWait, true
	}
	wait = s.bucket.wait(now, n, &s.rate)
	if s.ringed() {
		s.ring.advance(now, &s.shape)
		if s.shape.grains(n) > s.shape.limit {
			return max(wait, lackWait), true
		}
		wait = max(wait, s.ring.wait(now, n, &s.shape))
	}
	return wait, false
}

// noShare says whether n units are refused for nothing was given to this Envoy, not for what the fleet has used.
func (s *meterState) noShare(now, n int64) bool {
	_, lacks := s.shareWait(now, n)
	return lacks && s.share.mode != lent && (s.share.mode != rated || s.share.closed > 0)
}

// lapse puts in force what a lease has come to by now. clock is the time of the last take.
func (s *meterState) lapse(now, clock int64) {
	if s.share.mode != rated {
		return
	}
	for at, changed := s.share.lease.Lapse(now); changed; at, changed = s.share.lease.Lapse(now) {
		s.setTerms(at, clock, 0)
	}
}

// setTerms puts the lease's terms in force as of the time at, with tokens that come with them, and gives what did not fit. Debt
// stays debt.
func (s *meterState) setTerms(at, clock, tokens int64) (returned int64) {
	t := s.share.lease.Terms
	if s.ringed() {
		s.shape.limit = t.Cap / s.shape.grain
	}
	if s.share.closed > 0 { // nothing has refilled since
		s.bucket.full = satAdd(s.bucket.full, max(at-s.share.closed, 0))
		s.share.closed = 0
	}
	if t.Rate <= 0 || t.Burst <= 0 {
		return s.close(at, tokens)
	}
	to := newRate(t.Rate, s.rate.window, t.Burst)
	to.most = max(to.cost(s.share.whole), to.window)
	returned = s.bucket.reterm(at, clock, &s.rate, &to, tokens)
	s.rate = to
	return returned
}

// close stops the bucket: what it has goes back, what it owes stays.
func (s *meterState) close(at, tokens int64) (returned int64) {
	empty := satAdd(at, s.rate.cost(s.rate.burst))
	free := empty - max(s.bucket.full, at) // ns
	if free < 0 {
		free += mulDivDown(tokens, s.rate.window, s.rate.limit)
	} else {
		returned = tokens
	}
	if free >= 0 {
		returned += s.rate.units(free)
		free = 0
	}
	s.bucket = bucket{full: empty - free}
	s.share.closed = max(at, 1)
	return min(returned, s.rate.burst+tokens)
}

// takeShare takes n units at the time at.
func (s *meterState) takeShare(at, n int64) {
	h := &s.share
	h.spent += s.shape.grains(n) * s.shape.grain
	switch {
	case h.mode == lent:
		h.used += n
	case h.mode == drawn:
		h.used += n
		if s.paced() {
			s.bucket.take(at, n, &s.rate)
		}
	case h.closed > 0:
		s.bucket.take(h.closed, n, &s.rate)
	default:
		s.bucket.take(at, n, &s.rate)
	}
}

// settleShare makes a take of reserved units count as actual. What was lent for one call is not given to another: its lender has
// been told that it is used.
func (s *meterState) settleShare(at, now, reserved, actual int64) {
	h := &s.share
	h.spent += max(s.shape.grains(actual)-s.shape.grains(reserved), 0) * s.shape.grain
	switch {
	case h.mode == lent:
		return
	case h.mode == drawn:
		h.used = max(h.used+actual-reserved, 0)
	case h.closed > 0:
		now = h.closed
	}
	if s.paced() {
		s.bucket.settle(at, now, reserved, actual, &s.rate)
	}
}

// fitShare is fit for a meter that was one of the fleet's before: what is held of it is held on, whatever its limit is now.
func (s *meterState) fitShare(now int64, m Meter) {
	if s.ringed() && (s.shape.width != m.shape.width || s.shape.counts != m.shape.counts || s.shape.grain != m.shape.grain) {
		s.ring.refit(now, &s.shape, &m.shape)
		s.born = now
	}
	s.id, s.share.whole = m.id(), m.rate.limit
	s.shape = m.shape
	if s.counted() {
		s.rate = m.rate
	} else if s.ringed() {
		s.shape.limit = s.share.lease.Terms.Cap / s.shape.grain
	}
}

// strip takes away what was granted, for another record of the key may have it.
func (s *meterState) strip(at int64) {
	if !s.shared() {
		return
	}
	if s.counted() {
		s.share = share{mode: drawn, whole: s.share.whole, spent: s.share.spent}
		return
	}
	if s.share.closed == 0 {
		s.close(at, 0)
	}
	s.share = share{whole: s.share.whole, closed: s.share.closed, spent: s.share.spent}
	s.shape.limit = 0
}

// reterm carries a bucket over to other terms in the same window, in parts of a unit, with tokens that come along. The level becomes
// min(level + tokens, burst), and what did not fit is returned. Calls that are open can still give back what they would not have
// taken: a refund is at most what the bucket has lacked to be full ever since.
func (b *bucket) reterm(at, clock int64, from, to *rate, tokens int64) (returned int64) {
	before := mulDivDown(b.backlog(at), from.limit, to.limit) // whatever the burst is now: it was full at that, or not
	lack := mulDivUp(b.backlog(at), from.limit, to.limit)
	if more := to.burst - from.burst - tokens; more >= 0 {
		lack = satAdd(lack, mulDivUp(more, to.window, to.limit))
	} else {
		lack -= mulDivDown(-more, to.window, to.limit)
	}
	if lack < 0 {
		returned, lack = to.units(-lack), 0
	}
	for i := range b.troughs[:b.n] {
		t := &b.troughs[i]
		t.backlog = mulDivDown(t.backlog, from.limit, to.limit)
	}
	b.full = satAdd(at, lack)
	b.capDebt(at, to)
	b.note(max(at, clock), min(before, lack))
	return returned
}
