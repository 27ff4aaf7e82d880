// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"math"
	"math/bits"
	"time"
)

// rate is one limit: so much per window, and at most capacity at once.
type rate struct {
	limit    int64
	window   int64 // ns
	capacity int64
}

func newRate(limit int64, window, burst time.Duration) rate {
	r := rate{limit: limit, window: int64(window), capacity: limit}
	if burst > 0 && limit > 0 {
		n, _ := mulDiv(uint64(limit), uint64(burst), 0, uint64(window))
		// At least one, or nothing would ever be admitted.
		r.capacity = max(1, min(int64(n), maxTokens))
	}
	return r
}

func (r rate) on() bool { return r.limit > 0 }

// mulDiv is (a*b + plus) / c with its remainder, computed in 128 bits because
// tokens times nanoseconds do not fit into 64; too large a quotient saturates.
func mulDiv(a, b, plus, c uint64) (quo, rem uint64) {
	hi, lo := bits.Mul64(a, b)
	lo, carry := bits.Add64(lo, plus, 0)
	hi += carry
	if hi >= c {
		return math.MaxInt64, 0
	}
	quo, rem = bits.Div64(hi, lo, c)
	return min(quo, math.MaxInt64), rem
}

// counter keeps one dimension of one limit. The caller locks, and passes times
// that never go back.
type counter interface {
	// advance forgets (or refills) what the time up to now allows.
	advance(now int64, r rate)
	// room is how much could be taken at once now; it may be negative.
	room(r rate) int64
	// wait is how long until n fit, if nothing else is taken.
	wait(now int64, r rate, n int64) time.Duration
	// take takes n and returns a name for it.
	take(now, n int64) uint64
	// settle changes what was taken under that name by delta.
	settle(name uint64, r rate, delta int64)
	// full is how long until all is available again.
	full(now int64, r rate) time.Duration
}

// never is the wait of a cost that does not fit into the limit at all.
const never = time.Duration(math.MaxInt64)
