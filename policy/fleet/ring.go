// SPDX-License-Identifier: Apache-2.0

package fleet

// A ring counts units by the time at which they were taken, in slots of a sixtieth of a window, for as long as the quota's
// Memory says. It is coarse on the safe side: a slot counts as a whole until all of it is older.
type ring struct {
	width, counts int64 // ns of a slot; slots that count, the running one included
	head, sum     int64
	slots         []int64
}

// slotsOfWindow is how finely a window is cut, as in policy.
const slotsOfWindow = 60

// MemoryOf is for how long a ring may count a call, in ns, that has to cover a window and jitter ns more: the window, the
// running slot, and at most two slots for jitter, as the meters of package policy have them.
func MemoryOf(window, jitter int64) int64 {
	width := (window + slotsOfWindow - 1) / slotsOfWindow
	return (slotsOfWindow + 1 + min((jitter+width-1)/width, 2)) * width
}

func newRing(now, window, memory int64) ring {
	if memory == 0 {
		return ring{}
	}
	width := (window + slotsOfWindow - 1) / slotsOfWindow
	counts := memory / width
	return ring{width: width, counts: counts, head: now / width, slots: make([]int64, counts)}
}

func (r *ring) on() bool { return r.counts > 0 }

func (r *ring) advance(now int64) {
	if !r.on() {
		return
	}
	to := now / r.width
	if to-r.head >= r.counts {
		clear(r.slots)
		r.head, r.sum = to, 0
	}
	for r.head < to {
		r.head++
		slot := &r.slots[r.head%r.counts]
		r.sum -= *slot
		*slot = 0
	}
}

func (r *ring) add(now, n int64) {
	if r.on() {
		r.advance(now)
		r.slots[r.head%r.counts] += n
		r.sum += n
	}
}
