// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"math/bits"
)

// A rate is what a bucket refills at: limit units in window nanoseconds, of which burst units may be taken at once.
// All three are above zero. Sums of times saturate at forever. Made by newRate.
type rate struct {
	limit  int64 // units
	window int64 // ns
	burst  int64 // units, at most limit

	// tolerance is how far the theoretical arrival time may lie ahead of now after a take, in ns (tau of the generic cell
	// rate algorithm, ITU-T I.371): a burst's worth, rounded up.
	tolerance int64

	most int64 // ns that it may owe: the window's

	// each is the cost of one unit, where it is a whole number of ns: it saves a division. Else 0.
	each int64
}

const (
	// forever stands for a time that does not come (292 years).
	forever = math.MaxInt64

	// roundingSlack is what the tolerance is widened by, a nanosecond for each unit of the burst up to this many: each
	// cost is rounded up by less than 1 ns, so without it the last of a burst of single units would be refused, and a
	// burst of 1 would never be admitted where limit does not divide window.
	roundingSlack = 1000
)

// cost is the time in ns in which n units refill, rounded up: ceil(n*window/limit).
func (r *rate) cost(n int64) int64 {
	if r.each > 0 {
		return satMul(n, r.each)
	}
	return mulDivUp(n, r.window, r.limit)
}

func newRate(limit, window, burst int64) rate {
	r := rate{limit: limit, window: window, burst: burst, most: window}
	if window%limit == 0 {
		r.each = window / limit
	}
	r.tolerance = satAdd(r.cost(burst), min(burst, roundingSlack))
	return r
}

// units is how many whole units refill in ns nanoseconds: floor(ns*limit/window).
func (r *rate) units(ns int64) int64 {
	return mulDivDown(ns, r.limit, r.window)
}

// mulDivDown is floor(a*b/c) with a 128-bit product, for a >= 0 and b, c > 0; forever if it does not fit.
func mulDivDown(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(b))
	if hi >= uint64(c) {
		return forever
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, forever))
}

// mulDivUp is ceil(a*b/c) on the same terms.
func mulDivUp(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(b))
	if hi >= uint64(c) {
		return forever
	}
	q, rem := bits.Div64(hi, lo, uint64(c))
	if rem > 0 {
		q++
	}
	return int64(min(q, forever))
}

// satMul is a*b for a, b >= 0, at most forever.
func satMul(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi > 0 || lo > forever {
		return forever
	}
	return int64(lo)
}

// satAdd is a+b for b >= 0, at most forever.
func satAdd(a, b int64) int64 {
	if a > forever-b {
		return forever
	}
	return a + b
}
