// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

func (w *smallWorld) result() SmallQuotaRow {
	minutes := float64(w.hours)*60 - 2
	r := SmallQuotaRow{
		Window: "continuous", Skewed: w.skewed, Offered: w.offered, Mode: "escrow", Loss: w.loss, Ideal: w.ideal() / minutes,
		Admitted: float64(len(w.used)) / minutes, Messages: float64(w.sent) / minutes, Struck: float64(w.lender.Struck) / minutes,
	}
	if w.windowed {
		r.Window = "sliding 60s"
	}
	if w.static {
		r.Mode = "static"
	}
	slices.Sort(w.waits)
	if n := len(w.waits); n > 0 {
		r.P50, r.P95 = w.waits[n/2], w.waits[n*95/100]
	}
	r.Owed, r.MostIn60 = judgeSmall(w.used)
	return r
}

// judgeSmall charges an exact bucket with each call, and counts the most in any minute.
func judgeSmall(used []int64) (owed float64, most int64) {
	level, last, first := float64(smallLimit), int64(0), 0
	for i, t := range used {
		level = math.Min(smallLimit, level+float64(t-last)*smallLimit/60e9) - 1
		last, owed = t, max(owed, -level)
		for used[first] <= t-int64(time.Minute) {
			first++
		}
		most = max(most, int64(i-first+1))
	}
	return owed, most
}

// ideal is how many calls one central limiter admits, first come first served, each within its patience.
func (w *smallWorld) ideal() (n float64) {
	b := fleet.NewLocal(1, w.quota.Window, w.quota.Memory)
	b.Put(1, policy.Lease{Terms: policy.Terms{Rate: smallLimit, Burst: smallLimit, Cap: smallLimit}}, smallLimit)
	next := int64(0)
	for _, c := range w.calls {
		t := max(c.at, next)
		for b.Room(t) == 0 && t <= c.at+int64(smallPatience) {
			t += int64(10 * time.Millisecond)
		}
		if t > c.at+int64(smallPatience) {
			continue
		}
		b.Take(t, 1)
		n, next = n+1, t
	}
	return n
}
