// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/policytest"
	"pgregory.net/rapid"
)

// splitLimit has two meters that are split, and two that are not.
func splitLimit(rpm, tpm int64) *policy.Limit {
	meter := func(d policy.Dimension, n int64) policy.Meter {
		return policy.NewMeter(policy.MeterSpec{Dimension: d, Kind: policy.Continuous, Limit: n, Burst: n / 2})
	}
	return policy.NewLimit(policy.Enforce, 0, meter(policy.RPM, rpm), meter(policy.TPM, tpm), meter(policy.RPD, 100_000),
		policy.NewMeter(policy.MeterSpec{Dimension: policy.USDPerDay, Limit: 1_000_000}))
}

var splitClasses = []policy.Class{{Name: "a", Share: 500_000}, {Name: "b", Share: 300_000}, {Name: "c"}}

func stateOf(t interface{ Fatal(...any) }, store policy.Store, parts []policy.Part, now int64) []PoolState {
	states, _, _ := parts[0].(*class).read(now)
	if len(states) != 2 {
		t.Fatal("not two meters are split")
	}
	return append([]PoolState(nil), states...)
}

// missing is what all buckets of a meter lack together.
func missing(p *Pools, s *PoolState) int64 {
	n := p.pot - s.Pot
	for i, c := range p.classes {
		n += c.burst - s.Own[i]
	}
	return n / p.window
}

// Whatever order workers take and settle in: what is out is what they hold, on all meters, to the unit.
func TestPartsUnderAnyInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, limit, now := policytest.NewStore(), splitLimit(1000, 100_000), int64(time.Hour)
		var out [4]policy.Cost
		var workers []policytest.Worker
		for w := range 4 {
			plan := rapid.SliceOfN(rapid.IntRange(0, 29), 1, 8).Draw(t, "plan")
			workers = append(workers, func(yield func()) {
				parts := NewParts(policytest.View{Store: store, Yield: yield}, "P", limit, splitClasses)
				for _, k := range plan {
					cost, c := policy.Cost{Requests: 1, Input: int64(k) * 100}, k%3
					if !parts[c].Take(now, cost) {
						continue
					}
					actual := policy.Cost{Requests: 1, Input: int64(k/2) * 100}
					if k%4 == 0 {
						actual = policy.Cost{}
					}
					parts[c].Settle(now, cost, actual)
					out[w] = policy.Cost{Requests: out[w].Requests + actual.Requests, Input: out[w].Input + actual.Input}
				}
			})
		}
		policytest.Run(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "next") }, workers...)
		parts := NewParts(store, "P", limit, splitClasses)
		states := stateOf(t, store, parts, now)
		var sum policy.Cost
		for _, o := range out {
			sum.Requests, sum.Input = sum.Requests+o.Requests, sum.Input+o.Input
		}
		m := parts[0].(*class).meters
		if r, n := missing(m[0].Pools, &states[0]), missing(m[1].Pools, &states[1]); r != sum.Requests || n != sum.Input {
			t.Fatalf("%d requests and %d tokens are out, want %+v", r, n, sum)
		}
	})
}

// What a part refuses takes nothing from the buckets, and what a bucket refuses nothing from the part; what both admit is settled
// on both.
func TestPartsWithTheBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := policytest.NewStore()
		limit, tenant := splitLimit(100, 10_000), policy.NewLimit(policy.Enforce, 0, policy.NewMeter(policy.MeterSpec{Dimension: policy.TPM, Limit: 3000, Burst: 1500}))
		parts := NewParts(store, "P", limit, splitClasses)
		ledger, now := policy.NewLedger(store, 1), int64(time.Hour)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.SampledFrom([]int64{0, 1e6, 1e9, 2e10}).Draw(t, "wait")
			c := rapid.IntRange(0, 2).Draw(t, "class")
			var path policy.Path
			path.Add(policy.Step{Tier: policy.TierTenant, Key: policy.Key(1 + c%2), Owner: policy.Key(1 + c%2), Limit: tenant})
			path.Add(policy.Step{Tier: policy.TierProvider, Key: 9, Owner: 9, Limit: limit})
			path.Part = parts[c]
			cost := policy.Cost{Requests: 1, Input: rapid.Int64Range(1, 2000).Draw(t, "tokens")}
			before := stateOf(t, store, parts, now)
			plain := path
			plain.Part = nil
			var alone, res policy.Reservation
			without := ledger.Reserve(now, &plain, cost, &alone)
			ledger.Settle(now, &alone, policy.Cost{})
			may := parts[c].Refuse(now, cost).Reason == policy.None
			d := ledger.Reserve(now, &path, cost, &res)
			if (d.Verdict == policy.Admit) != (may && without.Verdict == policy.Admit) || d.Part == may {
				t.Fatalf("%v with the part %v and the buckets %v", d, may, without.Verdict)
			}
			if after := refilled(parts, stateOf(t, store, parts, now), now); d.Verdict == policy.Deny && missingAll(parts, after) != missingAll(parts, refilled(parts, before, now)) {
				t.Fatal("what was refused is held by the part")
			}
			if d.Verdict == policy.Deny {
				again := ledger.Reserve(now, &plain, cost, &alone)
				if again.Verdict != without.Verdict {
					t.Fatal("what the part refused is held by the buckets")
				}
				ledger.Settle(now, &alone, policy.Cost{})
				continue
			}
			held := missingAll(parts, stateOf(t, store, parts, now))
			ledger.Settle(now, &res, policy.Cost{})
			ledger.Settle(now, &res, policy.Cost{}) // does nothing
			if given := held - missingAll(parts, stateOf(t, store, parts, now)); given != cost.Requests+cost.Input {
				t.Fatalf("%d of %d came back", given, cost.Requests+cost.Input)
			}
			if rapid.Bool().Draw(t, "keep") {
				ledger.Reserve(now, &path, cost, &res)
			}
		}
	})
}

func refilled(parts []policy.Part, states []PoolState, now int64) []PoolState {
	for i, m := range parts[0].(*class).meters {
		m.refill(&states[i], now/m.tick)
	}
	return states
}

func missingAll(parts []policy.Part, states []PoolState) (n int64) {
	for i, m := range parts[0].(*class).meters {
		n += missing(m.Pools, &states[i])
	}
	return n
}

// A changed limit goes on with the same levels; other classes begin anew; a limit too small is not split at all.
func TestPartsOverAChange(t *testing.T) {
	store, now := policytest.NewStore(), int64(time.Hour)
	parts := NewParts(store, "P", splitLimit(1000, 100_000), splitClasses)
	for parts[0].Take(now, policy.Cost{Requests: 1, Input: 500}) {
	}
	small := NewParts(store, "P", splitLimit(1000, 50_000), splitClasses)
	if small[0].Take(now, policy.Cost{Requests: 1, Input: 500}) || !small[1].Take(now, policy.Cost{Requests: 1, Input: 500}) {
		t.Error("a change of the limit gives the class something, or takes it from another")
	}
	other := NewParts(store, "P", splitLimit(1000, 50_000), []policy.Class{{Name: "x", Share: 500_000}})
	if !other[0].Take(now, policy.Cost{Requests: 1, Input: 500}) {
		t.Error("other classes go on where these were")
	}
	if p := NewParts(store, "P", splitLimit(2, 2), splitClasses); p != nil {
		t.Error("a limit of two is split in three")
	}
	if p := NewParts(store, "P", splitLimit(1000, 1000), []policy.Class{{Name: "x"}}); p != nil {
		t.Error("nobody has a share, and the limit is split")
	}
}
