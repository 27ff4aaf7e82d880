// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"time"
)

// A Limit is what one key of a tier is held to: any number of meters, and calls in flight.
// Made by [NewLimit].
type Limit struct {
	Meters   []Meter
	InFlight int64 // calls; 0: no limit
	Mode     Mode

	print uint64 // tells different meters apart; 0: not known
}

// maxMeters is how many meters a limit may have, and the record of its key.
const maxMeters = 32

// NewLimit makes a limit. The meters must not change afterwards.
func NewLimit(mode Mode, inFlight int64, meters ...Meter) *Limit {
	l := &Limit{Mode: mode, InFlight: inFlight, Meters: meters}
	h := uint64(len(meters))
	for _, m := range meters {
		for _, v := range m.words() {
			h = mix(h ^ v)
		}
	}
	l.print = max(h, 1)
	return l
}

// words are all that a meter is.
func (m Meter) words() [9]uint64 {
	r, s := m.rate, m.shape
	return [...]uint64{
		m.id(), uint64(r.limit), uint64(r.window), uint64(r.burst), uint64(r.tolerance),
		uint64(s.width), uint64(s.counts), uint64(s.grain), uint64(s.limit),
	}
}

// A Meter is one windowed dimension of a limit, ready for use. Made by [NewMeter].
type Meter struct {
	Dimension Dimension
	Kind      WindowKind
	rate      rate
	shape     ringShape
}

// A MeterSpec says what a meter holds. All but Dimension and Limit have a default.
type MeterSpec struct {
	Dimension  Dimension
	Kind       WindowKind
	Limit      int64         // units in the dimension's own window
	Window     time.Duration // hold the same rate over this window instead; 0: the dimension's own
	Burst      int64         // units that may be taken at once
	BurstShare Share         // the same as a share of the limit; both 0: a quarter
	Jitter     time.Duration // by how much requests may bunch up between weir and the provider
}

// Bounds of a meter. MaxUnits keeps every product of the arithmetic within 128 bits and every time within 64.
const (
	MaxUnits  = 1_000_000_000_000
	MaxWindow = 31 * 24 * time.Hour
)

// NewMeter makes a meter. The limit must be in 1..MaxUnits and the window in 1 ms..MaxWindow; a limit that is less than
// one unit over a shorter window becomes one. Limits of 2^31 and more lose up to a part in 2^31 to the grain of the ring.
func NewMeter(s MeterSpec) Meter {
	own := int64(s.Dimension.Window())
	limit, window := s.Limit, own
	if s.Window > 0 && int64(s.Window) != own {
		window = int64(s.Window)
		limit = min(max(mulDivDown(s.Limit, window, own), 1), MaxUnits)
	}
	burst := cmp.Or(s.Burst, mulDivUp(limit, int64(s.BurstShare), int64(Whole)))
	if burst == 0 {
		burst = defaultBurst(limit, window, int64(s.Jitter), s.Kind)
	}
	return newMeter(s.Dimension, s.Kind, window, burst, shapeOf(limit, window, int64(s.Jitter)))
}

// newMeter makes a meter whose limit is whole grains.
func newMeter(d Dimension, k WindowKind, window, burst int64, shape ringShape) Meter {
	limit := shape.limit * shape.grain
	return Meter{Dimension: d, Kind: k, rate: newRate(limit, window, min(burst, limit)), shape: shape}
}

// defaultBurst is a quarter of the limit and at least one unit. Where only the bucket holds the limit, what may bunch up
// within the jitter is taken off.
func defaultBurst(limit, window, jitter int64, kind WindowKind) int64 {
	burst := (limit + 3) / 4
	if kind == Continuous {
		burst -= mulDivUp(limit, jitter, window)
	}
	return max(burst, 1)
}

// Limit is the units that the meter admits in its window.
func (m Meter) Limit() int64 { return m.rate.limit }

// Window is the length of the meter's window.
func (m Meter) Window() time.Duration { return time.Duration(m.rate.window) }

// Burst is the units that may be taken at once.
func (m Meter) Burst() int64 { return m.rate.burst }

// ringed says whether the meter has a ring beside its bucket.
func (m Meter) ringed() bool { return m.Kind != Continuous }

// meter is the index of the meter that goes on with the state of that id; -1 if there is none.
func (l *Limit) meter(id uint64) int {
	for i := range l.Meters {
		if l.Meters[i].id()&sameMeter == id&sameMeter {
			return i
		}
	}
	return -1
}

// Scale gives the limit for a share of it, each dimension at least one unit.
func (l *Limit) Scale(share Share) *Limit {
	part := func(n int64) int64 { return max(mulDivDown(n, int64(share), int64(Whole)), 1) }
	var meters []Meter
	for _, m := range l.Meters {
		shape := m.shape.resize(part(m.rate.limit))
		meters = append(meters, newMeter(m.Dimension, m.Kind, m.rate.window, part(m.rate.burst), shape))
	}
	inFlight := l.InFlight
	if inFlight > 0 {
		inFlight = part(inFlight)
	}
	return NewLimit(l.Mode, inFlight, meters...)
}

// A meterState is what a record keeps of a meter: its parameters as of the last use, and the counts.
type meterState struct {
	id     uint64 // dimension | kind<<8
	rate   rate
	shape  ringShape
	born   int64 // ns: the ring knows nothing of what was taken before
	seen   int64 // ns: when a limit last had this dimension
	bucket bucket
	ring   ring
}

// id is the dimension, and the kind of window.
func (m Meter) id() uint64 { return uint64(m.Dimension) | uint64(m.Kind)<<8 }

// sameMeter is the part of an id that says which of a key's meters it is: its window may change, and it goes on counting.
const sameMeter = 0xff

func (s *meterState) dimension() Dimension { return Dimension(s.id & 0xff) }

func (s *meterState) unit() Unit { return s.dimension().Unit() }

func (s *meterState) ringed() bool { return WindowKind(s.id>>8) != Continuous }

// wait is the time in ns after which n units are admitted, if nobody else takes any; forever if they never are.
func (s *meterState) wait(now, n int64) int64 {
	if n <= 0 { // what costs nothing here is not held up here
		return 0
	}
	if n > s.rate.limit {
		return forever
	}
	w := s.bucket.wait(now, n, s.rate)
	if s.ringed() {
		s.ring.advance(now, s.shape)
		w = max(w, s.ring.wait(now, n, s.shape))
	}
	return w
}

func (s *meterState) take(at, n int64) {
	if n <= 0 {
		return
	}
	s.bucket.take(at, n, s.rate)
	if s.ringed() {
		s.ring.advance(at, s.shape)
		s.ring.add(at, s.shape.grains(n), s.shape)
	}
}

func (s *meterState) settle(at, now, reserved, actual int64) {
	if reserved == actual {
		return
	}
	s.bucket.settle(at, now, reserved, actual, s.rate)
	if s.ringed() {
		s.ring.advance(now, s.shape)
		if at < s.born { // taken from another ring: a refund is not this one's to give
			at, reserved = now, min(reserved, actual)
		}
		s.ring.settle(at, now, reserved, actual, s.shape)
	}
}

// remaining is the units that would be admitted at once; below zero it is debt.
func (s *meterState) remaining(now int64) int64 {
	n := s.bucket.level(now, s.rate)
	if s.ringed() {
		s.ring.advance(now, s.shape)
		n = min(n, s.ring.room(s.shape))
	}
	return n
}

// spare is how many units may be taken and still leave seven eighths of bucket and window. So much at most is held back from
// others by reservations that are larger than they need to be.
func (s *meterState) spare(now int64) int64 {
	n := s.bucket.level(now, s.rate) - s.rate.burst/8*7
	if s.ringed() {
		n = min(n, s.ring.room(s.shape)-s.rate.limit/8*7)
	}
	return n
}

// asked says whether a limit has had this dimension within the last window.
func (s *meterState) asked(now int64) bool { return now-s.seen < s.rate.window }

// idle says whether the meter is as good as new.
func (s *meterState) idle(now int64) bool {
	if s.bucket.full > now {
		return false
	}
	s.ring.advance(now, s.shape)
	return !s.ringed() || s.ring.sum == 0
}

// fit brings the state in line with the meter as the policy has it now, without minting anything. The new rate counts from
// since on: when the policy came into force, or when the bucket was last used by another.
func (s *meterState) fit(now, since int64, m Meter) {
	if s.id == m.id() && s.rate == m.rate && s.shape == m.shape {
		return
	}
	if s.rate != m.rate {
		s.bucket.convert(min(since, now), s.rate, m.rate)
	}
	switch {
	case !s.ringed() && m.ringed():
		s.ring, s.born = newRing(now, m.shape), now
	case s.shape.width != m.shape.width || s.shape.counts != m.shape.counts || s.shape.grain != m.shape.grain:
		s.ring.refit(now, s.shape, m.shape)
		s.born = now
	}
	s.id, s.rate, s.shape = m.id(), m.rate, m.shape
}

func newMeterState(now int64, m Meter) meterState {
	return meterState{id: m.id(), rate: m.rate, shape: m.shape, born: now, seen: now, ring: newRing(now, m.shape)}
}
