// SPDX-License-Identifier: Apache-2.0

package policy

// A meterState is what a record keeps of a meter: its parameters as of the last use, and the counts. A bucket paces what a
// ring or a counter admits in its window; a continuous window has the bucket alone.
type meterState struct {
	id      uint64 // see [Meter.id]
	rate    rate
	shape   ringShape
	born    int64 // ns: the ring knows nothing of what was taken before
	seen    int64 // ns: when a limit last had this meter
	bucket  bucket
	counter counter
	share   share // of a fleet's
	ring    ring
}

func (s *meterState) dimension() Dimension { return Dimension(s.id & 0xff) }

func (s *meterState) unit() Unit { return s.dimension().Unit() }

func (s *meterState) kind() WindowKind { return WindowKind(s.id >> idKind & 0xff) }

func (s *meterState) ringed() bool { return s.kind() == Sliding }

func (s *meterState) counted() bool { return s.kind() == Fixed || s.kind() == Stock }

func (s *meterState) paced() bool { return s.id>>idPaced&1 != 0 }

// wait is the time in ns after which n units are admitted, if nobody else takes any; forever if they never are.
func (s *meterState) wait(now, n int64) (w int64) {
	if n <= 0 { // what costs nothing here is not held up here
		return 0
	}
	if s.shared() {
		w, _ = s.shareWait(now, n)
		return w
	}
	if n > s.rate.limit {
		return forever
	}
	if s.paced() {
		w = s.bucket.wait(now, n, &s.rate)
	}
	switch s.kind() {
	case Sliding:
		s.ring.advance(now, &s.shape)
		w = max(w, s.ring.wait(now, n, &s.shape))
	case Fixed, Stock:
		w = max(w, s.counter.wait(now, n, &s.rate))
	}
	return w
}

func (s *meterState) take(at, n int64) {
	if n <= 0 {
		return
	}
	if s.shared() {
		s.takeShare(at, n)
	} else if s.paced() {
		s.bucket.take(at, n, &s.rate)
	}
	switch s.kind() {
	case Sliding:
		s.ring.advance(at, &s.shape)
		s.ring.add(at, s.shape.grains(n), &s.shape)
	case Fixed, Stock:
		s.counter.take(at, n, s.kind(), &s.rate)
	}
}

func (s *meterState) settle(at, now, reserved, actual int64) {
	if reserved == actual {
		return
	}
	if s.shared() {
		s.settleShare(at, now, reserved, actual)
	} else if s.paced() {
		s.bucket.settle(at, now, reserved, actual, &s.rate)
	}
	if at < s.born { // taken from another window: a refund is not this one's to give
		at, reserved = now, min(reserved, actual)
	}
	switch s.kind() {
	case Sliding:
		s.ring.advance(now, &s.shape)
		s.ring.settle(at, now, reserved, actual, &s.shape)
	case Fixed, Stock:
		s.counter.settle(at, now, reserved, actual)
	}
}

// remaining is the units that would be admitted at once; below zero it is debt.
func (s *meterState) remaining(now int64) int64 {
	if s.share.mode == lent { // its window is its lender's
		return s.share.have(now)
	}
	return min(s.level(now), s.room(now))
}

// level is what the bucket has.
func (s *meterState) level(now int64) int64 {
	switch {
	case s.share.mode == lent, s.share.mode == drawn:
		return s.share.have(now)
	case s.shared() && s.share.closed > 0:
		return min(s.bucket.level(s.share.closed, &s.rate), 0)
	case !s.paced():
		return s.rate.burst
	}
	return s.bucket.level(now, &s.rate)
}

// room is what the window has.
func (s *meterState) room(now int64) int64 {
	switch s.kind() {
	case Sliding:
		s.ring.advance(now, &s.shape)
		return s.ring.room(&s.shape)
	case Fixed, Stock:
		return s.rate.limit - s.counter.used
	}
	return s.rate.limit
}

// counts is what the window has counted.
func (s *meterState) counts(now int64) int64 {
	switch s.kind() {
	case Sliding:
		s.ring.advance(now, &s.shape)
		return max(s.ring.sum*s.shape.grain, 0)
	case Fixed, Stock:
		return max(s.counter.used, 0)
	}
	return 0
}

// spare is how many units may be taken and still leave seven eighths of bucket and window. So much at most is held back from
// others by reservations that are larger than they need to be.
func (s *meterState) spare(now int64) int64 {
	level, room, limit := s.level(now), s.room(now), s.rate.limit
	switch {
	case s.share.mode == lent:
		return 0
	case s.share.mode == drawn:
		return min(level/8, room-(limit-limit/8))
	case s.ringed():
		limit = s.shape.limit * s.shape.grain
	}
	return min(level-(s.rate.burst-s.rate.burst/8), room-(limit-limit/8))
}

// asked says whether a limit has had this meter within the last window.
func (s *meterState) asked(now int64) bool { return now-s.seen < s.rate.window }

// idle says whether the meter is as good as new.
func (s *meterState) idle(now int64) bool {
	switch {
	case s.shared() && s.share.mode != unshared && s.share.lease.Until > now:
		return false // it would be given up
	case s.share.closed > 0:
		if s.bucket.level(s.share.closed, &s.rate) < 0 {
			return false
		}
	case s.paced() && s.bucket.full > now:
		return false
	}
	if s.counted() {
		return s.counter.used == 0 || s.counter.closes <= now && s.counter.carry == 0
	}
	if s.ringed() {
		s.ring.advance(now, &s.shape)
		return s.ring.sum <= 0
	}
	return true
}

// roll lets windows begin and end that do so by the clock; wall is what the wall clock is ahead of now.
func (s *meterState) roll(now, wall int64, m Meter) {
	switch m.Kind {
	case Fixed:
		was := s.counter.until
		if s.counter.roll(now, wall, m); s.shared() && s.counter.until != was {
			s.share = share{mode: drawn, whole: s.share.whole, used: s.counter.used}
		}
	case Stock:
		s.counter.expire(now)
	}
}

// fit brings the state in line with the meter as the policy has it now, without minting anything. The new rate counts from
// since on: when the policy came into force, or when the bucket was last used by another.
func (s *meterState) fit(now, since int64, m Meter) {
	if s.shared() && m.shared && s.kind() == m.Kind && s.rate.window == m.rate.window {
		s.fitShare(now, m)
		return
	}
	if s.id == m.id() && s.rate == m.rate && s.shape == m.shape {
		return
	}
	if s.share.closed > 0 { // what it owes it owes from now on
		s.bucket.full, since = satAdd(s.bucket.full, max(now-s.share.closed, 0)), now
	}
	used := s.counts(now) // by the old window
	if !m.paced {
		used = max(used, s.rate.burst-s.level(now)) // by the old bucket, which nobody is going to ask
	}
	switch {
	case m.paced && !s.paced():
		s.bucket = bucket{}
		s.bucket.take(now, min(used, m.rate.limit), &m.rate)
	case s.rate != m.rate:
		s.bucket.convert(min(since, now), &s.rate, &m.rate)
	}
	switch {
	case s.kind() != m.Kind:
		s.ring, s.counter, s.born = newRing(now, &m.shape), counter{}, now
		s.book(now, used, m)
	case m.ringed() && (s.shape.width != m.shape.width || s.shape.counts != m.shape.counts || s.shape.grain != m.shape.grain):
		s.ring.refit(now, &s.shape, &m.shape)
		s.born = now
	}
	s.id, s.rate, s.shape, s.share = m.id(), m.rate, m.shape, share{spent: s.share.spent}
	if m.shared {
		s.share.whole = m.rate.limit
		s.strip(now)
	}
}

// book counts in a new window of m what the old one had counted. A continuous window knows only what its bucket lacks, which
// the bucket goes on to know, if the new one has a bucket.
func (s *meterState) book(now, used int64, m Meter) {
	switch {
	case used <= 0:
	case m.ringed():
		s.ring.add(now, m.shape.grains(used), &m.shape)
	case m.counted():
		s.counter.used = used
		if m.Kind == Stock {
			s.counter.opened, s.counter.closes = now, satAdd(now, m.rate.window)
		}
	}
}

func newMeterState(now int64, m Meter) meterState {
	s := meterState{id: m.id(), rate: m.rate, shape: m.shape, born: now, seen: now, ring: newRing(now, &m.shape)}
	if m.shared {
		s.share.whole = m.rate.limit
		s.strip(now)
	}
	return s
}
