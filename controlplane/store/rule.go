// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math"

	"github.com/weirproxy/weir/policy"
)

// The rule of a central limit is that of package policy: a bucket paces, and a ring holds "never more than the limit in any
// window". What differs is the arithmetic, for the same is done in Lua, where every number is a float: times are in
// microseconds, and a level is in 1024ths of a unit, rounded down. A level in units, not a time when it is full, needs no
// conversion when a limit changes. rule.lua has the same functions under the same names.

const (
	ringSlots  = 64
	subWindows = 60
	fine       = 1024 // parts of a unit that a level is in

	forever = int64(-1)

	// exactly takes off what the rounding of floats may have added: three operations, each off by 2^-53 at most.
	exactly = 1 - 1.0/(1<<50)

	// maxLead is how far a record's clock may be ahead of now, before it is taken for a clock that has been put back.
	maxLead = 60_000_000
)

// A meterState is what is kept of a meter. All fields have a fixed size: that is how a file has it.
type meterState struct {
	ID, Kind, Paced, Limit, Burst, Window, Counts int64

	Born             int64 // before that another window counted
	At, Level        int64 // the level, as it was at the time At
	N                int64
	TroughAt, Trough [8]int64 // what the level lacked to be full, when something was taken; see policy.bucket
	Head, Sum        int64
	Slots            [ringSlots]int64
	Opened, Until    int64 // of a fixed window, or a stock
	Guard            int64
	Used, Carry      int64
}

func newState(now int64, m *Meter) meterState {
	s := meterState{
		ID: m.ID, Kind: int64(m.Kind), Limit: m.Limit, Burst: m.Burst, Window: m.Window, Counts: m.Counts,
		Born: now, At: now, Level: m.Burst * fine,
	}
	if m.Paced {
		s.Paced = 1
	}
	s.Head = now / s.width()
	return s
}

// fit brings the state in line with the meter as the policy has it now, and mints nothing: the level is at most what it was,
// and what the old window had counted counts in the new one as of now.
func (s *meterState) fit(now int64, m *Meter) {
	fresh := newState(now, m)
	same := s.Kind == fresh.Kind && s.Window == fresh.Window && s.Counts == fresh.Counts && s.Paced == fresh.Paced
	switch {
	case !same || s.At > now+maxLead:
		used := s.used(now)
		fresh.Level = min(s.level(now), fresh.Level)
		if s.Paced == 0 {
			fresh.Level = max(fresh.Level-used*fine, 0)
		}
		fresh.book(now, used)
		*s = fresh
	case s.Limit != m.Limit || s.Burst != m.Burst:
		s.Level, s.At = min(s.level(now), fresh.Level), max(s.At, now)
		s.Limit, s.Burst, s.N = m.Limit, m.Burst, 0
		s.note(now, 0)
	}
	switch m.Kind {
	case policy.Fixed:
		s.roll(m)
	case policy.Stock:
		if s.Until > 0 && now >= s.Until {
			s.Opened, s.Until, s.Used = 0, 0, 0
		}
	}
}

// used is what counts now, of a continuous limit what its bucket lacks.
func (s *meterState) used(now int64) int64 {
	switch policy.WindowKind(s.Kind) {
	case policy.Fixed, policy.Stock:
		return max(s.Used, 0)
	case policy.Continuous:
		return max(s.Burst-floorDiv(s.level(now), fine), 0)
	}
	s.advance(now)
	return max(s.Sum, 0)
}

// book counts in a new window what an old one had.
func (s *meterState) book(now, used int64) {
	switch policy.WindowKind(s.Kind) {
	case policy.Fixed:
		s.Used = used
	case policy.Stock:
		if s.Used = used; used > 0 {
			s.Opened, s.Until = now, now+s.Window
		}
	case policy.Sliding:
		s.add(now, used)
	}
}

// wait is the time after which n units are admitted, if nobody else takes any.
func (s *meterState) wait(now, n int64) (w int64) {
	if n <= 0 {
		return 0
	}
	if n > s.Limit {
		return forever
	}
	if s.Paced != 0 {
		w = s.bucketWait(now, n)
	}
	switch policy.WindowKind(s.Kind) {
	case policy.Fixed, policy.Stock:
		w = max(w, s.counterWait(now, n))
	case policy.Sliding:
		s.advance(now)
		w = max(w, s.ringWait(now, n))
	}
	return w
}

// remaining is what would be admitted at once.
func (s *meterState) remaining(now int64) int64 {
	r := s.Limit
	if s.Paced != 0 {
		r = floorDiv(s.level(now), fine)
	}
	switch policy.WindowKind(s.Kind) {
	case policy.Fixed, policy.Stock:
		r = min(r, s.Limit-s.Used)
	case policy.Sliding:
		s.advance(now)
		r = min(r, s.Limit-s.Sum)
	}
	return r
}

func (s *meterState) take(at, n int64) {
	if n <= 0 {
		return
	}
	level := s.level(at)
	s.note(at, s.Burst*fine-level)
	s.At, s.Level = at, max(level-n*fine, -s.Limit*fine)
	switch policy.WindowKind(s.Kind) {
	case policy.Fixed:
		s.count(at, n)
	case policy.Stock:
		if s.Until == 0 {
			s.Opened, s.Until = at, at+s.Window
		}
		s.Used += n
	case policy.Sliding:
		s.advance(at)
		s.add(at, n)
	}
}

// settle makes a take of the time at count as actual. A refund whose window has left is dropped, a charge is booked now.
func (s *meterState) settle(at, now, reserved, actual int64) {
	d := actual - reserved
	if d == 0 {
		return
	}
	s.bucketSettle(at, now, d)
	if at < s.Born {
		if d < 0 {
			return
		}
		at = now
	}
	switch policy.WindowKind(s.Kind) {
	case policy.Fixed, policy.Stock:
		switch {
		case d > 0 && s.Guard > 0 && now >= s.Until+s.Guard: // the next one has not been looked at yet
			s.count(now, d)
		case at >= s.Opened-2*s.Guard:
			s.count(at, d)
		case d > 0:
			s.count(now, d)
		}
	case policy.Sliding:
		s.advance(now)
		if !s.add(at, d) && d > 0 {
			s.add(now, d)
		}
	}
}

// gain is what flows into the bucket in so much time, in 1024ths, never rounded up.
func (s *meterState) gain(elapsed int64) int64 {
	elapsed = min(max(elapsed, 0), 3*s.Window)
	parts := float64(float64(elapsed)*float64(s.Limit)) / float64(s.Window)
	return int64(math.Floor(float64(parts*fine) * exactly))
}

func floorDiv(a, b int64) int64 { return int64(math.Floor(float64(a) / float64(b))) }
