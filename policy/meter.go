// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"time"
)

// A Meter is one windowed dimension of a limit, ready for use. Made by [NewMeter].
type Meter struct {
	Dimension Dimension
	Kind      WindowKind

	rate     rate
	shape    ringShape
	sub      uint8 // which of several windows of the same dimension
	paced    bool  // a bucket spreads what its window admits
	shared   bool  // over a fleet
	calendar *Calendar
}

// A MeterSpec says what a meter holds. All but Dimension and Limit have a default.
type MeterSpec struct {
	Dimension  Dimension
	Kind       WindowKind
	Limit      int64         // units in the dimension's own window
	Window     time.Duration // hold the same rate over this window instead; 0: the dimension's own
	Burst      int64         // units that may be taken at once
	BurstShare Share         // the same as a share of the limit; both 0: a quarter, or all of a fixed window
	Jitter     time.Duration // by how much requests may bunch up between weir and the provider
	Calendar   *Calendar     // of fixed windows; nil: UTC
}

// Bounds of a meter. MaxUnits keeps every product of the arithmetic within 128 bits and every time within 64.
const (
	MaxUnits  = 1_000_000_000_000
	MaxWindow = 31 * Day
)

// NewMeter makes a meter. The limit must be in 1..MaxUnits and the window in 1 ms..MaxWindow; a limit that is less than
// one unit over a shorter window becomes one. Limits of 2^31 and more lose up to a part in 2^31 to the grain of the ring.
func NewMeter(s MeterSpec) Meter {
	own := int64(s.Dimension.Window())
	limit, window := s.Limit, own
	if s.Window > 0 && int64(s.Window) != own {
		window = int64(s.Window)
		if own > 0 {
			limit = min(max(mulDivDown(s.Limit, window, own), 1), MaxUnits)
		}
	}
	burst := cmp.Or(s.Burst, mulDivUp(limit, int64(s.BurstShare), int64(Whole)))
	m := Meter{Dimension: s.Dimension, Kind: s.Kind, calendar: s.Calendar, paced: s.Kind != Stock && (s.Kind != Fixed || burst > 0)}
	if m.Kind == Subwindows {
		m.Kind = Sliding
	}
	if burst == 0 {
		burst = defaultBurst(limit, window, int64(s.Jitter), s.Kind)
	}
	m.shape = shapeOf(limit, window, int64(s.Jitter))
	limit = m.shape.limit * m.shape.grain
	m.rate = newRate(limit, window, min(burst, limit))
	return m
}

// defaultBurst is a quarter of the limit and at least one unit; of fixed windows and stocks all there is. Where only the
// bucket holds the limit, what may bunch up within the jitter is taken off.
func defaultBurst(limit, window, jitter int64, kind WindowKind) int64 {
	burst := (limit + 3) / 4
	switch kind {
	case Continuous:
		burst -= mulDivUp(limit, jitter, window)
	case Fixed, Stock:
		burst = limit
	}
	return max(burst, 1)
}

// subwindowLengths are those in which Azure OpenAI judges requests beside the minute (Microsoft Learn, "Manage Azure OpenAI
// quota": a 1 or 10 second period).
var subwindowLengths = []time.Duration{10 * time.Second, time.Second}

// Meters makes the meter of a spec and, for sub-windows, one more for each of them that is shorter than its window. Tokens
// have none: a single prompt may well need the tokens of a minute.
func (s MeterSpec) Meters() []Meter {
	m := NewMeter(s)
	meters := []Meter{m}
	if s.Kind != Subwindows || s.Dimension.Unit() != Requests {
		return meters
	}
	for i, length := range subwindowLengths {
		if length < m.Window() {
			s.Window, s.Burst, s.BurstShare = length, 0, Whole
			sub := NewMeter(s)
			sub.sub = uint8(i + 1)
			meters = append(meters, sub)
		}
	}
	return meters
}

// Limit is the units that the meter admits in its window.
func (m Meter) Limit() int64 { return m.rate.limit }

// Window is the length of the meter's window.
func (m Meter) Window() time.Duration { return time.Duration(m.rate.window) }

// Burst is the units that may be taken at once.
func (m Meter) Burst() int64 { return m.rate.burst }

// ringed says whether a ring holds the window, counted whether a counter does.
func (m Meter) ringed() bool  { return m.Kind == Sliding }
func (m Meter) counted() bool { return m.Kind == Fixed || m.Kind == Stock }

// The parts of an id: the dimension, the kind of window, which of several windows, whether it is paced, and whether a fleet shares it.
const (
	idKind   = 8
	idSub    = 16
	idPaced  = 24
	idShared = 25

	// sameMeter is the part that says which of a key's meters it is: its window may change, and it goes on counting.
	sameMeter = 0xff00ff
)

func (m Meter) id() uint64 {
	id := uint64(m.Dimension) | uint64(m.Kind)<<idKind | uint64(m.sub)<<idSub
	if m.paced {
		id |= 1 << idPaced
	}
	if m.shared {
		id |= 1 << idShared
	}
	return id
}

// words are all that a meter is, but its calendar, which is asked each time.
func (m Meter) words() [9]uint64 {
	r, s := m.rate, m.shape
	return [...]uint64{
		m.id(), uint64(r.limit), uint64(r.window), uint64(r.burst), uint64(r.tolerance),
		uint64(s.width), uint64(s.counts), uint64(s.grain), uint64(s.limit),
	}
}

// What a store needs to know of a meter that keeps it elsewhere: which of its key's meters it is, whether a bucket paces it, how
// many slots of a ring count, and of a fixed window when it begins and ends and how far clocks may differ around that.

// ID is the same for meters of which one goes on with what the other has counted.
func (m Meter) ID() uint64 { return uint64(m.Dimension) | uint64(m.sub)<<idSub }

// Paced says whether a bucket spreads what the window admits.
func (m Meter) Paced() bool { return m.paced }

// Slots is how many slots of a ring count, the running one included; each is a sixtieth of the window.
func (m Meter) Slots() int { return int(m.shape.counts) }

// Guard is the time around the end of a fixed window in which a call counts in both.
func (m Meter) Guard() time.Duration { return time.Duration(min(maxGuard, m.rate.window/subWindows)) }

// Period is the fixed window in which a time of the wall clock lies.
func (m Meter) Period(wall time.Time) (from, until time.Time) {
	f, u := m.calendar.window(wall.UnixNano(), m.rate.window)
	return time.Unix(0, f), time.Unix(0, u)
}
