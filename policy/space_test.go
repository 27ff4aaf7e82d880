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
