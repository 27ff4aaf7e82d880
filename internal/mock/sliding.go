// SPDX-License-Identifier: Apache-2.0

package mock

import "time"

// taken is one entry of a sliding log.
type taken struct{ at, n int64 }

// sliding is the exact log of the last window. An entry counts while it is
// younger than the window, so two entries one window apart never count together.
type sliding struct {
	log   []taken
	head  int    // entries before it have left
	gone  uint64 // how many entries were cut off the slice: name = gone + index
	total int64
}

func (s *sliding) advance(now int64, r rate) {
	for s.head < len(s.log) && s.log[s.head].at <= now-r.window {
		s.total -= s.log[s.head].n
		s.head++
	}
	// Move the rest to the front only when that is cheap by comparison.
	if s.head > 1024 && s.head > len(s.log)/2 {
		n := copy(s.log, s.log[s.head:])
		s.log = s.log[:n]
		s.gone += uint64(s.head)
		s.head = 0
	}
}

func (s *sliding) room(r rate) int64 { return r.limit - s.total }

func (s *sliding) wait(now int64, r rate, n int64) time.Duration {
	if n > r.limit {
		return never
	}
	missing := n - s.room(r)
	for _, e := range s.log[s.head:] {
		if missing <= 0 {
			break
		}
		if missing -= e.n; missing <= 0 {
			return time.Duration(e.at + r.window - now)
		}
	}
	return 0
}

func (s *sliding) full(now int64, r rate) time.Duration {
	for i := len(s.log) - 1; i >= s.head; i-- {
		if e := s.log[i]; e.n > 0 {
			return time.Duration(e.at + r.window - now)
		}
	}
	return 0
}

func (s *sliding) take(now, n int64) uint64 {
	s.log = append(s.log, taken{at: now, n: n})
	s.total += n
	return s.gone + uint64(len(s.log)) - 1
}

// settle corrects an entry that still counts. The correction belongs to the
// moment of the entry: one that has left the window changes nothing.
func (s *sliding) settle(name uint64, _ rate, delta int64) {
	if name < s.gone+uint64(s.head) {
		return
	}
	s.log[name-s.gone].n += delta
	s.total += delta
}
