// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/weirproxy/weir/policy/policytest"
)

// However two workers interleave that reserve on two tiers, settle and give back, the limits hold at every moment, and at the
// end the records hold what was used and nothing else (P5, P6, P22).
func TestTwoWorkersInEveryOrder(t *testing.T) {
	user := NewLimit(Enforce, 2, NewMeter(MeterSpec{Dimension: TPM, Limit: 100, BurstShare: Whole}))
	tenant := NewLimit(Enforce, 0, NewMeter(MeterSpec{Dimension: TPM, Limit: 90, BurstShare: Whole}))
	path := pathOf(map[Tier]*Limit{TierUser: user, TierTenant: tenant}, map[Tier]string{})
	const now = int64(10e9)
	for _, sizes := range [][2]int64{{40, 40}, {50, 50}, {91, 40}, {30, 60}} {
		orders := policytest.EveryOrder(5, func(choose func(int) int) {
			store := policytest.NewStore()
			var first Reservation
			l := NewLedger(store, 9)
			l.Reserve(now, path, Cost{Requests: 1, Input: 10}, &first)
			l.Settle(now, &first, Cost{Requests: 1, Input: 10})
			var admitted [2]bool
			var ledgers [2]*Ledger
			worker := func(i int) policytest.Worker {
				return func(yield func()) {
					ledgers[i] = NewLedger(policytest.View{Store: store, Yield: yield}, uint64(i+1))
					var r Reservation
					if ledgers[i].Reserve(now, path, Cost{Requests: 1, Input: sizes[i]}, &r).Verdict == Admit {
						admitted[i] = true
						ledgers[i].Settle(now, &r, Cost{Requests: 1, Input: 1})
					}
				}
			}
			policytest.Run(choose, worker(0), worker(1))
			want := int64(10)
			for i := range admitted {
				if admitted[i] {
					want++
				}
				if fits := sizes[i] <= 80; admitted[i] != fits && sizes[0]+sizes[1] <= 80 {
					t.Fatalf("%v: worker %d admitted %v, and there was room for both", sizes, i, admitted[i])
				}
			}
			for i := range path.Len {
				var r loaded
				l.load(now, &path.Steps[i], &r)
				if used := r.meters[0].rate.limit - r.meters[0].room(now); used != want {
					t.Fatalf("%v: tier %v counts %d, want %d", sizes, path.Steps[i].Tier, used, want)
				}
				if n := r.inFlight(now, 0); n != 0 {
					t.Fatalf("%v: %d in flight at the end", sizes, n)
				}
			}
		})
		t.Logf("%v: %d orders", sizes, orders)
	}
}
