// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"testing"

	"github.com/weirproxy/weir/policy"
	"pgregory.net/rapid"
)

// A gate never opens earlier than any verdict asked, whatever comes after, and closes for no longer than the longest.
func TestGate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g Gate
		var now, must int64
		for range rapid.IntRange(1, 30).Draw(t, "verdicts") {
			now += rapid.Int64Range(0, minute).Draw(t, "dt")
			v := Verdict{Class: Class(rapid.IntRange(0, int(NumClasses)-1).Draw(t, "class")), Told: true, Wait: rapid.Int64Range(0, 2*minute).Draw(t, "wait")}
			spread := rapid.Int64Range(0, second).Draw(t, "spread")
			if v.Class != OK && v.Class != ClientError && v.Wait+spread > 0 {
				must = max(must, now+v.Wait+spread)
			}
			until, _ := g.Close(now, v, spread)
			if until != must || g.Wait(now) != max(must-now, 0) || (g.Class(now) == OK) != (must <= now) {
				t.Fatalf("at %d closed until %d (%v), should be %d", now, until, g.Class(now), must)
			}
		}
	})
}

func TestGateUntold(t *testing.T) {
	var g Gate
	exhausted := Verdict{Class: Exhausted}
	now := int64(0)
	for _, want := range []int64{1, 2, 4, 8, 16, 32, 60, 60} {
		if until, changed := g.Close(now, exhausted, 0); until != now+want*minute || !changed {
			t.Fatalf("closed for %d ns, want %d min", until-now, want)
		}
		if _, changed := g.Close(now+1, exhausted, 0); changed {
			t.Fatal("a late answer closed it for longer")
		}
		now += want * minute
	}
	g.Succeeded(now)
	if until, _ := g.Close(now, exhausted, 0); until != now+minute {
		t.Error("a success changed nothing")
	}
	g.Open()
	if g.Wait(now) != 0 {
		t.Error("it stays closed")
	}
	if _, changed := g.Close(now, Verdict{Class: Congestion}, second); changed {
		t.Error("a congestion without a wait closes it")
	}
	if until, _ := g.Close(maxTime-1, Verdict{Class: Congestion, Told: true, Wait: MaxWait}, maxTime); until != maxTime {
		t.Error("the end of time overflows")
	}
}

// No minute has more than growth above the fullest one between one window ago and two, or above the free rate; and a client
// that sends what it may gets there.
func TestRamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		above := rapid.Int64Range(1, 2_000_000).Draw(t, "above")
		window := rapid.Int64Range(1, 31).Draw(t, "window")
		r := NewRamp(above, policy.Growth{Share: policy.Share(rapid.Int64Range(0, 1_000_000).Draw(t, "growth")), Per: policy.Duration(window * minute)})
		var sent []int64
		for m := range int64(rapid.IntRange(1, 120).Draw(t, "minutes")) {
			n := r.Room(m*minute + 1)
			if rapid.IntRange(0, 3).Draw(t, "pause") == 0 {
				n = rapid.Int64Range(0, n).Draw(t, "n")
			}
			peak := int64(0)
			for k := max(0, m-2*window); k <= m-window; k++ {
				peak = max(peak, sent[k])
			}
			if most := max(above, peak+mulShare(peak, r.growth)); r.Room(m*minute+second) != most || n > most {
				t.Fatalf("minute %d: room %d, should be %d of %v", m, r.Room(m*minute+second), most, sent)
			}
			n = min(n, maxCount/4) // what a slot holds
			r.Sent(m*minute+2*second, n)
			sent = append(sent, n)
		}
	})
}

func TestRampExample(t *testing.T) {
	r := NewRamp(1_000_000, policy.Growth{Share: 500_000, Per: policy.Duration(15 * minute)})
	for m, want := range map[int64]int64{0: 1_000_000, 14: 1_000_000, 15: 1_500_000, 29: 1_500_000, 30: 2_250_000, 45: 3_375_000} {
		r = NewRamp(1_000_000, policy.Growth{Share: 500_000, Per: policy.Duration(15 * minute)})
		for k := range m {
			r.Sent(k*minute, r.Room(k*minute))
		}
		if got := r.Ceiling(m * minute); got != want {
			t.Errorf("minute %d: %d, want %d", m, got, want)
		}
	}
	if got := r.Ceiling(10_000 * minute); got != 1_000_000 {
		t.Errorf("%d after a long pause", got)
	}
	r.Sent(-5, -7)
	if w := r.Wait(61 * second); w != 59*second {
		t.Errorf("waits %d", w)
	}
}
