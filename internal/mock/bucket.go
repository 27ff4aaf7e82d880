// SPDX-License-Identifier: Apache-2.0

package mock

import "time"

// bucket refills continuously up to a capacity. The level is exact: what does
// not make a whole unit yet is kept in rest, as units times nanoseconds.
type bucket struct {
	level, rest int64
	last        int64
	primed      bool
}

func (b *bucket) advance(now int64, r rate) {
	if !b.primed {
		*b = bucket{level: r.capacity, last: now, primed: true}
		return
	}
	grown, rest := mulDiv(uint64(now-b.last), uint64(r.limit), uint64(b.rest), uint64(r.window))
	b.last, b.rest = now, int64(rest)
	// Compare by difference: the sum could overflow after a very long pause.
	if int64(grown) >= r.capacity-b.level {
		b.level, b.rest = r.capacity, 0
		return
	}
	b.level += int64(grown)
}

func (b *bucket) room(rate) int64 { return b.level }

func (b *bucket) wait(_ int64, r rate, n int64) time.Duration {
	if n > r.capacity {
		return never
	}
	return b.until(r, n)
}

func (b *bucket) full(_ int64, r rate) time.Duration { return b.until(r, r.capacity) }

// until is the time for the level to grow to n, rounded up.
func (b *bucket) until(r rate, n int64) time.Duration {
	if b.level >= n {
		return 0
	}
	// (missing*window - rest + limit-1) / limit, without a negative step.
	missing, window := uint64(n-b.level), uint64(r.window)
	quo, rem := mulDiv(missing-1, window, window-uint64(b.rest), uint64(r.limit))
	if rem > 0 {
		quo++
	}
	return time.Duration(quo)
}

func (b *bucket) take(_, n int64) uint64 {
	b.level -= n
	return 0
}

func (b *bucket) settle(_ uint64, r rate, delta int64) {
	b.level = min(b.level-delta, r.capacity)
}
