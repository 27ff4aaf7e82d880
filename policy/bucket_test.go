// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A taken is what a test knows of a take: when, how much was reserved, and what it counts as now.
type taken struct {
	at, reserved, counts int64
	open                 bool
}

// exactLevel is the slow twin of the bucket: it replays all takes with what they count as now, in exact fractions, and
// gives the level in units at the time now, before what is taken then.
func exactLevel(history []taken, now int64, r rate) *big.Rat {
	full := big.NewRat(r.burst, 1)
	level, last := new(big.Rat).Set(full), int64(0)
	refill := func(to int64) {
		level.Add(level, new(big.Rat).SetFrac(mul(r.limit, to-last), big.NewInt(r.window)))
		if level.Cmp(full) > 0 {
			level.Set(full)
		}
		last = to
	}
	for _, t := range history {
		refill(t.at)
		level.Sub(level, big.NewRat(t.counts, 1))
	}
	refill(now)
	return level
}

func mul(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

func drawRate(t *rapid.T) rate {
	limit := rapid.OneOf(rapid.Int64Range(1, 50), rapid.Int64Range(1, 100_000), rapid.Int64Range(1, MaxUnits)).Draw(t, "limit")
	window := rapid.OneOf(rapid.SampledFrom([]int64{1e9, 60e9, 86400e9}), rapid.Int64Range(1e6, int64(MaxWindow))).Draw(t, "window")
	return newRate(limit, window, rapid.Int64Range(1, limit).Draw(t, "burst"))
}

// A bucketRun drives a bucket at random and remembers what happened.
type bucketRun struct {
	t       *rapid.T
	r       rate
	b       bucket
	now     int64
	history []taken
}

func (x *bucketRun) step() {
	x.now += 1 + rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, x.r.window/4+1), rapid.Int64Range(0, 2*x.r.window)).Draw(x.t, "dt")
	if open := x.open(); len(open) > 0 && rapid.Bool().Draw(x.t, "settle") {
		h := &x.history[rapid.SampledFrom(open).Draw(x.t, "which")]
		h.open, h.counts = false, rapid.Int64Range(0, h.reserved).Draw(x.t, "actual")
		x.b.settle(h.at, x.now, h.reserved, h.counts, &x.r)
		return
	}
	n := rapid.Int64Range(1, x.r.burst).Draw(x.t, "n")
	if x.b.wait(x.now, n, &x.r) == 0 {
		if short := new(big.Rat).Sub(big.NewRat(n, 1), exactLevel(x.history, x.now, x.r)); short.Cmp(x.slack()) > 0 {
			x.t.Fatalf("admitted %d, %v more than the exact bucket has", n, short.FloatString(3))
		}
		x.b.take(x.now, n, &x.r)
		x.history = append(x.history, taken{x.now, n, n, true})
	}
}

// slack is what refills in the rounding slack, in units.
func (x *bucketRun) slack() *big.Rat {
	return new(big.Rat).SetFrac(mul(x.r.limit, roundingSlack+2), big.NewInt(x.r.window))
}

func (x *bucketRun) open() (open []int) {
	for i, h := range x.history {
		if h.open {
			open = append(open, i)
		}
	}
	return open
}

// Never more than burst + rate x time is counted in any interval, and never more than an exact bucket would admit that had
// been charged right from the start, however late what was reserved is settled (P1, P2).
func TestBucketPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &bucketRun{t: t, r: drawRate(t), now: rapid.Int64Range(0, 1e15).Draw(t, "start")}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			x.step()
		}
		for i := range x.history {
			sum := int64(0)
			for _, h := range x.history[i:] {
				sum += h.counts
				most := new(big.Rat).SetFrac(mul(x.r.limit, h.at-x.history[i].at), big.NewInt(x.r.window))
				most.Add(most, big.NewRat(x.r.burst, 1)).Add(most, x.slack())
				if big.NewRat(sum, 1).Cmp(most) > 0 {
					t.Fatalf("%d counted in %d ns, at most %v", sum, h.at-x.history[i].at, most.FloatString(3))
				}
			}
		}
	})
}

// What was taken and given back at once leaves no trace, and what is open for long is not lost while the bucket is busy.
func TestBucketRefundIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &bucketRun{t: t, r: drawRate(t), now: 1}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			x.step()
		}
		x.now++
		before := x.b.level(x.now, &x.r)
		b := x.b
		n := rapid.Int64Range(1, x.r.limit).Draw(t, "n")
		b.take(x.now, n, &x.r)
		if b.full < x.now+x.r.tolerance+x.r.window { // no debt was forgiven
			b.settle(x.now, x.now, n, 0, &x.r)
			if after := b.level(x.now, &x.r); after != before {
				t.Fatalf("level %d, after take and refund %d", before, after)
			}
		}
	})
}

// A busy bucket with few takes at once gives a late refund back whole.
func TestBucketLateRefund(t *testing.T) {
	r := newRate(6000, 60e9, 1500) // 100 a second
	var b bucket
	b.take(1e9, 1000, &r)
	b.take(1e9+1, 500, &r) // empty
	for i := range int64(5) {
		b.take(2e9+i*1e9, 100, &r)
	}
	b.settle(1e9, 7e9, 1000, 200, &r)
	if got := b.level(7e9, &r); got != 900 {
		t.Errorf("level %d, want 900", got)
	}
	// Full in between: nothing is left to give back.
	b = bucket{}
	b.take(1e9, 1000, &r)
	b.take(20e9, 1500, &r)
	b.settle(1e9, 20e9+1, 1000, 0, &r)
	if got := b.level(20e9+1, &r); got != 0 {
		t.Errorf("level %d, want 0", got)
	}
}

// Under steady overload what is reserved and not used comes back and is used again, however many calls are open: a bucket
// gives all of its limit, a window what the open reservations leave of it.
func TestRefundsAreUsed(t *testing.T) {
	const limit, used = 1_000_000, 200
	for _, kind := range []WindowKind{Continuous, Sliding} {
		for _, latency := range []time.Duration{200 * time.Millisecond, time.Second, 2 * time.Second} {
			for _, reserved := range []int64{400, 2000} {
				got := sustained(NewMeter(MeterSpec{Dimension: TPM, Kind: kind, Limit: limit, BurstShare: Whole}), int64(latency), reserved, used)
				want := 1.0
				if kind == Sliding { // so much a second of the time of a window, and of the time of a reservation
					want = 60 / (61 + latency.Seconds()*float64(reserved)/used)
				}
				if got < 0.95*want || got > 1.01 {
					t.Errorf("%v, %v a call, %d reserved for %d: %.3f of the limit is used, want %.3f", kind, latency, reserved, used, got, want)
				}
			}
		}
	}
}

// sustained is the share of a meter's limit that is used by calls of a latency, of which there are always more.
func sustained(m Meter, latency, reserved, used int64) float64 {
	s := newMeterState(0, m)
	var open []int64 // when they were admitted
	const from, until = int64(124e9), int64(124e9 + 6*62e9)
	sum := int64(0)
	for now := int64(1); now < until; now += 1e6 {
		for len(open) > 0 && open[0]+latency <= now {
			s.settle(open[0], now, reserved, used)
			open = open[1:]
			if now >= from {
				sum += used
			}
		}
		for s.wait(now, reserved) == 0 {
			now++
			s.take(now, reserved)
			open = append(open, now)
		}
	}
	return float64(sum) / float64(m.rate.limit) * float64(m.rate.window) / float64(until-from)
}

// The wait is exact: refused before, admitted at that instant.
func TestBucketWaitIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &bucketRun{t: t, r: drawRate(t), now: 1}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			x.step()
		}
		n := rapid.Int64Range(1, x.r.limit).Draw(t, "n")
		w := x.b.wait(x.now, n, &x.r)
		if got := x.b.wait(x.now+w, n, &x.r); got != 0 {
			t.Fatalf("after a wait of %d there are %d left", w, got)
		}
		if w > 0 && x.b.wait(x.now+w-1, n, &x.r) != 1 {
			t.Fatalf("admitted 1 ns too early")
		}
	})
}

// Small numbers are neither dead nor infinite (P7).
func TestBucketEdges(t *testing.T) {
	for _, r := range []rate{
		newRate(1, 60e9, 1), newRate(7, 60e9, 1), newRate(1, int64(MaxWindow), 1), newRate(7, 60e9, 5), newRate(997, 60e9, 900), newRate(MaxUnits, 1e6, MaxUnits),
		newRate(MaxUnits, int64(MaxWindow), 1), newRate(999_999_937, 1e9, 999_999_937),
	} {
		var b bucket
		now := int64(1e9)
		for i := range 3 {
			if w := b.wait(now, r.burst, &r); w != 0 {
				t.Fatalf("%+v: full bucket refuses a burst: %d", r, w)
			}
			b.take(now, r.burst, &r)
			w := b.wait(now, 1, &r)
			if w <= 0 && r.cost(1) > roundingSlack {
				t.Fatalf("%+v: empty bucket admits", r)
			}
			if i == 2 && w > r.window {
				t.Fatalf("%+v: waits %d", r, w)
			}
			now = b.full + 1
		}
		b = bucket{}
		for i := range min(r.burst, 1000) { // each of which is rounded up
			if w := b.wait(now, 1, &r); w != 0 {
				t.Fatalf("%+v: refuses the %d. of a burst of single ones", r, i+1)
			}
			b.take(now, 1, &r)
		}
	}
}

// More than a burst is taken from a full bucket only, which then owes the rest.
func TestBucketAboveBurst(t *testing.T) {
	r := newRate(600, 60e9, 100)
	var b bucket
	if w := b.wait(1e9, 500, &r); w != 0 {
		t.Fatalf("waits %d", w)
	}
	b.take(1e9, 500, &r)
	if got := b.level(1e9, &r); got != -400 {
		t.Errorf("level %d, want -400", got)
	}
	if got := b.wait(1e9, 500, &r); got != 50e9 {
		t.Errorf("wait %d, want 50 s: until it is full", got)
	}
	b.take(1e9, 100_000, &r)
	if got := b.level(1e9, &r); got < -601 {
		t.Errorf("debt of %d is more than a window", got)
	}
}

// A change of the rate never gives a higher level, however often it changes (P4).
func TestBucketConvertNeverMints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &bucketRun{t: t, r: drawRate(t), now: 1}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			x.step()
		}
		level := x.b.level(x.now, &x.r)
		r := x.r
		for range rapid.IntRange(1, 10).Draw(t, "changes") {
			to := drawRate(t)
			x.b.convert(x.now, &r, &to)
			r = to
			got := x.b.level(x.now, &r)
			if got > level || got > r.burst || got < min(level, r.burst)-1-r.units(1) && got > -r.limit {
				t.Fatalf("level %d became %d, burst %d", level, got, r.burst)
			}
			level = got
		}
	})
}
