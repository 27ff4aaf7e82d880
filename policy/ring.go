// SPDX-License-Identifier: Apache-2.0

package policy

import "math"

// A ring counts what was admitted in each sub-window of the last window, so that "never more than the limit in ANY
// window" holds, which a bucket alone does not give (RATIONALE.md, "Why a ring beside the bucket?"). It counts the
// running slot, all that lie in the window before it, and a few more for jitter, the time by which requests may bunch on
// their way to the provider.
//
// Counts are in grains, so that they fit into 32 bits: one unit for limits below 2^31.
type ring struct {
	head  int64 // number of the running slot: time / width
	edge  int64 // when it ends, ns; it saves a division
	sum   int64 // of the slots that count
	slots [ringSlots]uint32
}

const (
	ringSlots = 64 // a power of two: all that count, and at least one more

	// subWindows is how finely a window is cut. Under steady overload 60/(61+jitter slots) of a limit can be used.
	subWindows = 60

	// maxJitterSlots keeps what is usable above 0.95: 60/63.
	maxJitterSlots = 2
)

// A ringShape is how a ring is read: made by [shapeOf] for a limit.
type ringShape struct {
	width  int64 // ns of one slot
	counts int64 // slots that count, the running one included
	grain  int64 // units in one count
	limit  int64 // grains
}

// shapeOf gives the shape for limit units in any window ns, with jitter ns.
func shapeOf(limit, window, jitter int64) ringShape {
	width := (window + subWindows - 1) / subWindows
	extra := min((jitter+width-1)/width, maxJitterSlots)
	return ringShape{width: width, counts: 1 + subWindows + extra}.resize(limit)
}

// slack is how far back the ring counts beyond the window, in ns.
func (s *ringShape) slack() int64 { return (s.counts - 1 - subWindows) * s.width }

// resize gives the shape for another limit in the same window.
func (s ringShape) resize(limit int64) ringShape {
	s.grain = 1 + limit>>31
	s.limit = limit / s.grain
	return s
}

func (s *ringShape) grains(n int64) int64 {
	if s.grain == 1 {
		return n
	}
	return mulDivUp(n, 1, s.grain)
}

// advance moves the running slot up to now. A clock that goes back changes nothing.
func (r *ring) advance(now int64, s *ringShape) {
	if now < r.edge {
		return
	}
	to := now / s.width
	if to-r.head >= ringSlots {
		*r = newRing(now, s)
		return
	}
	for r.head < to {
		r.head++
		r.sum -= int64(r.slots[uint64(r.head-s.counts)%ringSlots])
		r.slots[uint64(r.head)%ringSlots] = 0
	}
	r.edge = (to + 1) * s.width
}

func newRing(now int64, s *ringShape) ring {
	head := now / s.width
	return ring{head: head, edge: (head + 1) * s.width}
}

// wait is the time in ns after which n units fit, if nobody else takes any; forever if n is above the limit.
// The ring must have been advanced to now.
func (r *ring) wait(now, n int64, s *ringShape) int64 {
	lack := r.sum + s.grains(n) - s.limit
	if lack <= 0 {
		return 0
	}
	for slot := r.head - s.counts + 1; slot <= r.head; slot++ {
		if lack -= int64(r.slots[uint64(slot)%ringSlots]); lack <= 0 {
			return max((slot+s.counts)*s.width-now, 0)
		}
	}
	return forever
}

// add counts n grains in the slot of the time at; a slot that has left counts no more.
func (r *ring) add(at, n int64, s *ringShape) bool {
	slot := r.head
	if at < r.edge-s.width {
		if slot = at / s.width; slot <= r.head-s.counts {
			return false
		}
	}
	p := &r.slots[uint64(slot)%ringSlots]
	was := int64(*p)
	*p = uint32(min(max(was+n, 0), math.MaxUint32))
	r.sum += int64(*p) - was
	return true
}

// settle makes a take of reserved units at the time at count as actual units. A refund whose slot has left is dropped, a
// charge whose slot has left is booked now.
func (r *ring) settle(at, now, reserved, actual int64, s *ringShape) {
	d := s.grains(actual) - s.grains(reserved)
	if !r.add(at, d, s) && d > 0 {
		r.add(now, d, s)
	}
}

// room is how many units fit now; below zero it is debt. The ring must have been advanced to now.
func (r *ring) room(s *ringShape) int64 {
	return (s.limit - r.sum) * s.grain
}

// refit carries the ring over to another width: all that counts is taken for admitted now, which is never too little.
func (r *ring) refit(now int64, from, to *ringShape) {
	r.advance(now, from)
	units := r.sum * from.grain
	*r = newRing(now, to)
	r.add(now, to.grains(units), to)
}
