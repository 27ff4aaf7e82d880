// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// mostInWindow is the slow twin of the ring: the largest sum of what counts in any window.
func mostInWindow(history []taken, window int64) (most int64) {
	for i, first := range history {
		sum := int64(0)
		for _, h := range history[i:] {
			if h.at-first.at < window {
				sum += h.counts
			}
		}
		most = max(most, sum)
	}
	return most
}

// A meterRun drives a meter at random, and with it bucket and ring.
type meterRun struct {
	t       *rapid.T
	m       Meter
	s       meterState
	now     int64
	history []taken
}

func drawMeter(t *rapid.T) Meter {
	return NewMeter(MeterSpec{
		Dimension: rapid.SampledFrom([]Dimension{RPS, RPM, RPD, TPM, TPD}).Draw(t, "dimension"),
		Limit:     rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 1<<20), rapid.Int64Range(1<<31-2, 1<<33)).Draw(t, "limit"),
		Window:    rapid.SampledFrom([]time.Duration{0, 10 * time.Second, time.Hour}).Draw(t, "window"),
		Jitter:    rapid.SampledFrom([]time.Duration{0, 100 * time.Millisecond, time.Second}).Draw(t, "jitter"),

		BurstShare: rapid.SampledFrom([]Share{0, Whole}).Draw(t, "burst"),
	})
}

func (x *meterRun) step() {
	w := x.m.rate.window
	x.now += 1 + rapid.OneOf(rapid.Int64Range(0, w/100), rapid.Int64Range(0, w/4), rapid.Int64Range(w-w/20, w), rapid.Int64Range(0, 2*w)).Draw(x.t, "dt")
	for i := range x.history {
		if h := &x.history[i]; h.open && rapid.IntRange(0, 3).Draw(x.t, "settle") == 0 {
			h.open, h.counts = false, rapid.Int64Range(0, h.reserved).Draw(x.t, "actual")
			x.s.settle(h.at, x.now, h.reserved, h.counts)
			return
		}
	}
	n := rapid.Int64Range(1, x.m.rate.limit).Draw(x.t, "n")
	if x.s.wait(x.now, n) == 0 {
		x.s.take(x.now, n)
		x.history = append(x.history, taken{x.now, n, n, true})
	}
}

// Never more than the limit is counted in any window, whatever is taken and however late it is settled, as long as it
// turns out no larger than reserved.
func TestWindowPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &meterRun{t: t, m: drawMeter(t), now: rapid.Int64Range(0, 1e15).Draw(t, "start")}
		x.s = newMeterState(x.now, x.m)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			x.step()
			if most := mostInWindow(x.history, x.m.rate.window); most > x.m.rate.limit {
				t.Fatalf("%d in one window, the limit is %d", most, x.m.rate.limit)
			}
		}
	})
}

// What was admitted in one instant counts until the last moment of its window, wherever in a slot that was.
func TestWindowEdge(t *testing.T) {
	for _, at := range []int64{0, 1, 166_666_666, 999_999_999, 7_123_456_789} {
		m := NewMeter(MeterSpec{Dimension: RPM, Limit: 60, Window: 10 * time.Second, BurstShare: Whole})
		s := newMeterState(at, m)
		s.take(at, m.Limit())
		if s.wait(at+int64(m.Window())-1, 1) == 0 {
			t.Errorf("taken at %d: one more is admitted before the window is over", at)
		}
		if w := s.wait(at, 1); w > int64(m.Window())*62/60 {
			t.Errorf("taken at %d: the next waits %v", at, time.Duration(w))
		}
	}
}

// The wait of bucket and ring together is exact.
func TestMeterWaitIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &meterRun{t: t, m: drawMeter(t), now: 1}
		x.s = newMeterState(x.now, x.m)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			x.step()
		}
		n := rapid.Int64Range(1, x.m.rate.limit).Draw(t, "n")
		w := x.s.wait(x.now, n)
		if later := x.s; later.wait(x.now+w, n) != 0 {
			t.Fatalf("after a wait of %d there is more to wait", w)
		}
		if before := x.s; w > 0 && before.wait(x.now+w-1, n) != 1 {
			t.Fatal("admitted 1 ns too early")
		}
	})
}

// At least 0.95 of a limit is usable under steady overload by requests of up to a twentieth of it.
func TestWindowIsUsable(t *testing.T) {
	for _, window := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 24 * time.Hour} {
		for _, parts := range []int64{20, 21, 33, 100, 1000} {
			const limit = 1_000_000
			m := NewMeter(MeterSpec{Dimension: TPM, Limit: limit * int64(time.Minute) / int64(window), Window: window, Jitter: 100 * time.Millisecond})
			s, now, used := newMeterState(1, m), int64(1), int64(0)
			for now < 10*int64(window) {
				n := m.Limit() / parts
				if w := s.wait(now, n); w > 0 {
					now += w
					continue
				}
				s.take(now, n)
				used += n
			}
			if got := float64(used) / 10 / float64(m.Limit()); got < 0.95 || got > 1.01 {
				t.Errorf("window %v, a limit of %d in parts of 1/%d: %.3f used", window, m.Limit(), parts, got)
			}
		}
	}
}

// A charge that comes late still counts, and nothing is admitted until it has left the window.
func TestOverrunIsWorkedOff(t *testing.T) {
	m := NewMeter(MeterSpec{Dimension: TPM, Limit: 10_000})
	s, at := newMeterState(1, m), int64(1)
	s.take(at, 100)
	s.settle(at, at+5e9, 100, 12_000)
	if got := s.remaining(at + 5e9); got >= 0 {
		t.Errorf("remaining %d, want debt", got)
	}
	if w := s.wait(at+5e9, 1); w < 55e9 {
		t.Errorf("admits after %d s", w/1e9)
	}
	// Its slot has left: booked now.
	s = newMeterState(1, m)
	s.take(at, 100)
	s.settle(at, at+90e9, 100, 12_000)
	if w := s.wait(at+90e9, 1); w < 55e9 {
		t.Errorf("a late charge is forgotten: admits after %d s", w/1e9)
	}
}

// A change of the limit keeps what was counted; a change of the window keeps at least that.
func TestFitKeepsCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &meterRun{t: t, m: drawMeter(t), now: rapid.Int64Range(1, 1e15).Draw(t, "start")}
		x.s = newMeterState(x.now, x.m)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			x.step()
		}
		x.s.remaining(x.now) // advances the ring
		used := x.s.ring.sum * x.s.shape.grain
		to := drawMeter(t)
		x.s.fit(x.now, x.now, to)
		used = min(used, 1<<32-1) // a slot holds no more
		if got := x.s.remaining(x.now); got > to.rate.limit-used {
			t.Fatalf("%d were counted, but %d of %d remain", used, got, to.rate.limit)
		}
	})
}

// A new rate counts from the moment at which it came into force, not from when the bucket is next used.
func TestNewRateCountsAtOnce(t *testing.T) {
	slow := NewMeter(MeterSpec{Dimension: TPM, Limit: 600, Kind: Continuous, Burst: 500})
	fast := NewMeter(MeterSpec{Dimension: TPM, Limit: 60_000, Kind: Continuous, Burst: 50_000})
	s := newMeterState(1, slow)
	s.take(1, 500)
	s.fit(30e9, 10e9, fast) // 10 s at 10 a second, and then 20 s at 1,000
	if got := s.remaining(30e9); got < 20_095 || got > 20_100 {
		t.Errorf("remaining %d, want 20,100", got)
	}
	s = newMeterState(1, fast)
	s.take(1, 50_000)
	s.fit(30e9, 10e9, slow) // 10 s at 1,000 a second are more than its burst
	if got := s.remaining(30e9); got < 499 || got > 500 {
		t.Errorf("remaining %d, want 500", got)
	}
}
