// SPDX-License-Identifier: Apache-2.0

package store

// width is the length of a ring's slot.
func (s *meterState) width() int64 { return (s.Window + subWindows - 1) / subWindows }

// advance moves the running slot up to now. A clock that goes back changes nothing.
func (s *meterState) advance(now int64) {
	to := now / s.width()
	if to-s.Head >= ringSlots {
		s.Head, s.Sum, s.Slots = to, 0, [ringSlots]int64{}
		return
	}
	for s.Head < to {
		s.Head++
		s.Sum -= s.Slots[mod(s.Head-s.Counts)]
		s.Slots[mod(s.Head)] = 0
	}
}

func mod(slot int64) int64 { return (slot%ringSlots + ringSlots) % ringSlots }

// ringWait is the time after which n units fit. The ring must have been advanced.
func (s *meterState) ringWait(now, n int64) int64 {
	lack := s.Sum + n - s.Limit
	if lack <= 0 {
		return 0
	}
	for slot := s.Head - s.Counts + 1; slot <= s.Head; slot++ {
		if lack -= s.Slots[mod(slot)]; lack <= 0 {
			return max((slot+s.Counts)*s.width()-now, 1)
		}
	}
	return s.Window
}

// add counts n units in the slot of the time at; false if that has left.
func (s *meterState) add(at, n int64) bool {
	slot := min(at/s.width(), s.Head)
	if slot <= s.Head-s.Counts {
		return false
	}
	i := mod(slot)
	n = max(n, -s.Slots[i])
	s.Slots[i] += n
	s.Sum += n
	return true
}

// roll opens the fixed window that the meter says it is now, but goes back to none.
func (s *meterState) roll(m *Meter) {
	s.Guard = m.Guard
	if m.Until <= s.Until {
		if s.Until-m.Until > 2*s.Window { // the clock was wrong by a window or more, and is right now
			s.Until = m.Until
		}
		return
	}
	used := int64(0)
	switch {
	case s.Until == m.From:
		used = s.Carry
	case s.Until == 0, s.Until > m.From: // windows begin elsewhere by now: what counts goes on counting
		used = s.Used
	}
	s.Opened, s.Until, s.Used, s.Carry = m.From+m.Guard, m.Until, used, 0
}

// counterWait is the time after which n units fit.
func (s *meterState) counterWait(now, n int64) int64 {
	closes := s.Until + s.Guard
	switch {
	case s.Used+n <= s.Limit:
		return 0
	case s.Carry+n > s.Limit:
		return max(closes-now, 0) + s.Window
	}
	return max(closes-now, 1)
}

// count counts n units of the time at.
func (s *meterState) count(at, n int64) {
	s.Used = max(s.Used+n, 0)
	if s.Guard > 0 && at >= s.Until-s.Guard {
		s.Carry = min(max(s.Carry+n, 0), s.Used)
	}
}
