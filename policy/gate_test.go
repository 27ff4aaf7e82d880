// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/policy/policytest"
)

func gatePath(l *Limit) *Path {
	p := new(Path)
	p.Add(Step{Tier: TierProvider, Space: Space{Tier: TierProvider}, Key: 7, Owner: 7, Limit: l})
	return p
}

// A closed pool admits nothing on any worker, not even what was reserved ahead on the worker that closed it, and says to the
// nanosecond when it opens. Who comes late with an older gate changes nothing; a new policy, and other workers' calls in flight,
// do not open it.
func TestGateCloses(t *testing.T) {
	const now = int64(time.Hour)
	store := policytest.NewStore()
	a, b := NewLedger(store, 1), NewLedger(store, 2)
	limit := NewLimit(Enforce, 1000, NewMeter(MeterSpec{Dimension: RPM, Limit: 100_000, BurstShare: Whole}))
	path, one := gatePath(limit), Cost{Requests: 1}
	var r Reservation
	if !a.ReserveAmple(now, path, one, &r) {
		t.Fatal("nothing is reserved ahead")
	}
	until := now + 3e9 + 1
	if !a.SetGate(now, &path.Steps[0], Gate{Until: until, Why: ProviderCooling, Version: 2}) || !b.SetGate(now, &path.Steps[0], Gate{Version: 1}) {
		t.Fatal("not set")
	}
	if a.ReserveAmple(now, path, one, &r) {
		t.Error("admitted out of what was reserved ahead")
	}
	other := gatePath(NewLimit(Enforce, 2000, NewMeter(MeterSpec{Dimension: RPM, Limit: 100_000}), NewMeter(MeterSpec{Dimension: TPM, Limit: 100_000})))
	for i, p := range []*Path{path, other, path} {
		for _, at := range []int64{now, until - 1} {
			d := b.Reserve(at, p, one, &r)
			if d.Verdict != Deny || d.Refusal.Reason != ProviderCooling || int64(d.Refusal.Wait) != until-at || d.Refusal.Tier != TierProvider || !d.Refusal.Gated() {
				t.Fatalf("%d at %d: %+v", i, at-now, d)
			}
		}
	}
	shadow := *path
	shadow.Shadow = true
	if d := b.Reserve(now, &shadow, one, &r); d.Verdict != Admit || d.Shadow.Reason != ProviderCooling {
		t.Errorf("in shadow mode: %+v", d)
	}
	for vm := uint64(3); vm < 9; vm++ { // more holders than there is room for at first
		if d := NewLedger(store, vm).Reserve(until, other, one, &r); d.Verdict != Admit {
			t.Fatalf("it is open: %+v", d)
		}
	}
}

// A cut rate lets through no more than its share, and most of it, whatever went before; nothing becomes too large for good; and
// whatever rates follow each other, the limit itself holds in any window.
func TestCutRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const window = int64(time.Minute)
		l := NewLedger(policytest.NewStore(), 1)
		kind := rapid.SampledFrom([]WindowKind{Sliding, Continuous}).Draw(t, "kind")
		n := rapid.Int64Range(20, 2000).Draw(t, "limit")
		limit := NewLimit(Enforce, 0, NewMeter(MeterSpec{Dimension: RPM, Kind: kind, Limit: n, BurstShare: Whole / 4}))
		path := gatePath(limit)
		now := int64(time.Hour)
		type taken struct{ at, n int64 }
		var all []taken
		take := func(units int64) bool {
			var r Reservation
			d := l.Reserve(now, path, Cost{Requests: units}, &r)
			if d.Refusal.Reason == RequestTooLarge {
				t.Fatalf("%d of %d is too large", units, n)
			}
			if d.Verdict == Admit {
				all = append(all, taken{now, units})
			}
			return d.Verdict == Admit
		}
		version, owes := uint32(0), false
		for range rapid.IntRange(1, 6).Draw(t, "phases") {
			rate := Share(rapid.Int64Range(100_000, int64(Whole)).Draw(t, "rate"))
			version++
			l.SetGate(now, &path.Steps[0], Gate{Rate: rate, Version: version})
			units := rapid.Int64Range(1, max(n/20, 1)).Draw(t, "units")
			span := rapid.Int64Range(1, 5).Draw(t, "windows") * window
			sent := int64(0)
			for end := now + span; now < end; now += window / 200 {
				for take(units) {
					sent += units
				}
			}
			share := float64(n) * float64(rate) / float64(Whole) * float64(span) / float64(window)
			burst := float64(n)/4*float64(rate)/float64(Whole) + 1
			if float64(sent) > share+burst+float64(units) {
				t.Fatalf("%d sent in %v at %v of %d", sent, time.Duration(span), rate, n)
			}
			if kind == Continuous && !owes && units*4 < n/4 && float64(sent) < 0.9*share-burst-float64(2*units) {
				t.Fatalf("only %d sent in %v at %v of %d", sent, time.Duration(span), rate, n)
			}
			if rapid.Bool().Draw(t, "large") {
				owes = take(n) || owes
			}
		}
		for i := range all {
			sum := int64(0)
			for _, o := range all[i:] {
				if kind == Sliding && o.at < all[i].at+window {
					sum += o.n
				}
			}
			if sum > n {
				t.Fatalf("%d in a window, the limit is %d", sum, n)
			}
		}
	})
}
