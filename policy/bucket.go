// SPDX-License-Identifier: Apache-2.0

package policy

import "math"

// A bucket holds the level of one dimension as a theoretical arrival time (GCRA): the instant at which it will be full
// again. Times are ns of the caller's monotonic clock. A level below zero is debt.
//
// What is counted: a take counts as of the instant it was made, with what it turned out to cost once that is known. So a
// late refund must not give back what has refilled in the meantime: see [bucket.settle] and RATIONALE.md, "Why does a
// bucket remember troughs?".
type bucket struct {
	full    int64 // when the bucket is full again; in the past: it is
	n       int64 // how many troughs are in use
	troughs [8]trough
}

// A trough is a low point of the backlog: at the take of time at, the bucket lacked backlog ns to be full. The list has
// the least backlog of all takes at or after each time: at and backlog both rise along it.
type trough struct {
	at, backlog int64
}

// backlog is the time in ns until the bucket is full.
func (b *bucket) backlog(now int64) int64 {
	return max(b.full-now, 0)
}

// wait is the time in ns after which n units may be taken, if nobody else takes any; 0 is now.
// More than a burst may be taken from a full bucket only, which then owes the rest.
func (b *bucket) wait(now, n int64, r *rate) int64 {
	if n > r.burst {
		return b.backlog(now)
	}
	after := satAdd(satAdd(now, b.backlog(now)), r.cost(n))
	return max(after-r.tolerance-now, 0)
}

// take takes n units at the time at, which must be later than that of every take before. It does not ask whether it may.
func (b *bucket) take(at, n int64, r *rate) {
	b.note(at, b.backlog(at))
	b.full = satAdd(max(b.full, at), r.cost(n))
	b.capDebt(at, r)
}

// settle makes a take of reserved units at the time at count as actual units instead; now is the present.
// It gives back at most what a bucket would have now that had been charged actual in the first place.
func (b *bucket) settle(at, now, reserved, actual int64, r *rate) {
	was, is := r.cost(reserved), r.cost(actual)
	if is >= was {
		b.full = satAdd(b.full, is-was)
		b.capDebt(now, r)
		return
	}
	b.full = max(b.full-min(was-is, b.leastSince(at)), 0)
	b.lower(at, was-is)
}

// capDebt bounds debt to what refills in one window: what was overspent beyond is forgiven, for a bucket that owes hours helps nobody.
func (b *bucket) capDebt(now int64, r *rate) {
	b.full = min(b.full, satAdd(satAdd(now, r.tolerance), r.most))
}

// level is what may be taken at once, in units; below zero it is debt.
func (b *bucket) level(now int64, r *rate) int64 {
	free := r.tolerance - b.backlog(now)
	if free < 0 {
		return -mulDivUp(-free, r.limit, r.window)
	}
	return min(r.units(free), r.burst)
}

// note adds a take to the troughs.
func (b *bucket) note(at, backlog int64) {
	for b.n > 0 && b.troughs[b.n-1].backlog >= backlog {
		b.n--
	}
	if b.n == int64(len(b.troughs)) {
		b.join()
	}
	b.troughs[b.n] = trough{at, backlog}
	b.n++
}

// join makes one of two neighbours, with the lower backlog and the later time, so that late refunds get less, never more. It
// takes those that are nearest by ratio: so the troughs come to lie like powers of something, and what a refund may be is never
// thought much smaller than it is, however many calls are open.
func (b *bucket) join() {
	best, least := 0, math.Inf(1)
	for i := range len(b.troughs) - 1 {
		if ratio := float64(b.troughs[i+1].backlog) / float64(b.troughs[i].backlog); ratio < least {
			best, least = i, ratio
		}
	}
	b.troughs[best+1].backlog = b.troughs[best].backlog
	copy(b.troughs[best:], b.troughs[best+1:])
	b.n--
}

// leastSince is the least backlog at any take after the time at; forever if there was none.
func (b *bucket) leastSince(at int64) int64 {
	for _, t := range b.troughs[:b.n] {
		if t.at > at {
			return t.backlog
		}
	}
	return forever
}

// lower takes d ns off the backlog of all takes after the time at, as if an earlier one had cost that much less.
func (b *bucket) lower(at, d int64) {
	old, n := b.troughs, b.n
	b.n = 0
	for _, t := range old[:n] {
		if t.at > at {
			t.backlog = max(t.backlog-d, 0)
		}
		b.note(t.at, t.backlog)
	}
}

// convert carries the bucket over from one rate to another, never to a higher level: level' = min(level, burst').
// Debt stays the same in units. Refunds of what was taken before are lost, for the troughs are in the old unit.
func (b *bucket) convert(now int64, from, to *rate) {
	level := min(b.level(now, from), to.burst)
	if level < 0 {
		b.full = satAdd(satAdd(now, to.tolerance), to.cost(-level))
	} else {
		b.full = now + to.tolerance - mulDivDown(level, to.window, to.limit)
	}
	b.capDebt(now, to)
	b.n = 0
	b.note(now, 0)
}
