// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/policy/policytest"
	"pgregory.net/rapid"
)

// However often a policy names a tenant and forgets it again, and whoever vouches for it, what it used counts.
func TestNamesComeAndGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLedger(policytest.NewStore(), 1)
		limit := meters(MeterSpec{Dimension: RPM, Limit: 100, BurstShare: Whole})
		now, total := int64(time.Hour), 0
		for range rapid.IntRange(2, 8).Draw(t, "policies") {
			now += int64(time.Second)
			since := now
			space := Space{Tier: TierTenant, Slots: MinSlots, Named: rapid.Bool().Draw(t, "named"), Vouched: rapid.Bool().Draw(t, "vouched")}
			path := new(Path)
			path.Add(Step{Tier: TierTenant, Space: space, Key: 7, Owner: 7, Limit: limit, Since: since})
			now += int64(time.Second)
			total += admitted(l, now, path, Cost{Requests: 1}, rapid.IntRange(0, 60).Draw(t, "calls"))
		}
		if total > 100 {
			t.Fatalf("%d calls in a minute, the limit is 100", total)
		}
	})
}

// Calls that other workers have in flight count wherever the policy has their key kept.
func TestCallsInFlightMoveWithTheirKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := policytest.NewStore()
		a, b := NewLedger(store, 1), NewLedger(store, 2)
		limit := meters()
		limit.InFlight = 5
		now, open := int64(time.Hour), 0
		for range rapid.IntRange(1, 6).Draw(t, "policies") {
			now += int64(time.Second)
			space := Space{Tier: TierTenant, Slots: MinSlots, Named: rapid.Bool().Draw(t, "named"), Vouched: rapid.Bool().Draw(t, "vouched")}
			path := new(Path)
			path.Add(Step{Tier: TierTenant, Space: space, Key: 7, Owner: 7, Limit: limit, Since: now})
			now += int64(time.Second)
			for _, l := range []*Ledger{a, b} {
				open += admitted(l, now, path, Cost{Requests: 1}, rapid.IntRange(0, 3).Draw(t, "calls"))
			}
			a.Flush(now)
			b.Flush(now)
		}
		if open > 5 {
			t.Fatalf("%d calls in flight, the limit is 5", open)
		}
	})
}
