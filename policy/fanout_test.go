// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math/big"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy/policytest"
	"pgregory.net/rapid"
)

// A fan-out is admitted as a whole, or refused with the largest number that would be; branches take their part of it, and
// what none has taken goes back.
func TestFanout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := NewLimit(Enforce, rapid.Int64Range(1, 20).Draw(t, "in flight"),
			NewMeter(MeterSpec{Dimension: TreeCalls, Kind: Stock, Limit: rapid.Int64Range(1, 40).Draw(t, "calls"), Window: time.Hour}))
		tenant := meters(MeterSpec{Dimension: TPM, Limit: rapid.Int64Range(100, 5000).Draw(t, "tpm")}, MeterSpec{Dimension: RPM, Limit: rapid.Int64Range(1, 60).Draw(t, "rpm")})
		world := func() (*Ledger, *Path) {
			l := NewLedger(policytest.NewStore(), 1)
			path := pathOf(map[Tier]*Limit{TierTree: tree, TierTenant: tenant}, map[Tier]string{})
			var r Reservation
			l.Reserve(1, path, Cost{Requests: 1, Input: 50}, &r)
			return l, path
		}
		each, n := Cost{Requests: 1, Input: rapid.Int64Range(0, 300).Draw(t, "input")}, rapid.Int64Range(1, 30).Draw(t, "branches")
		l, path := world()
		var res Reservation
		d := l.ReserveFanout(1e9, path, each, n, &res)
		k := int64(0) // the slow twin: one more as long as it goes
		for ; k < n; k++ {
			l, path := world()
			var r Reservation
			if l.Reserve(1e9, path, each.Times(k+1), &r).Verdict != Admit {
				break
			}
		}
		if d.Verdict == Admit != (k == n) || d.Verdict == Deny && (d.Fits != k || d.Refusal.Reason != FanoutRefused) {
			t.Fatalf("%d branches: %v, %d would fit, want %d of %d", n, d.Verdict, d.Fits, k, n)
		}
		if d.Verdict == Deny {
			return
		}
		taken := rapid.Int64Range(0, n).Draw(t, "taken")
		for range taken {
			var branch Reservation
			if !res.Split(each, &branch) {
				t.Fatal("a branch found nothing left")
			}
			l.Settle(2e9, &branch, Cost{})
		}
		var more Reservation
		if rest := each.Times(n - taken); res.Cost != rest || each != (Cost{}) && res.Split(rest.Times(2), &more) && taken < n {
			t.Fatalf("%+v is left, want %+v", res.Cost, rest)
		}
		l.Settle(3e9, &res, Cost{})
		l.Renew(3e9)
		if l.InFlight() != 1 { // the one that was there before
			t.Fatalf("%d in flight", l.InFlight())
		}
		var again Reservation
		if l.ReserveFanout(3e9, path, each, n, &again).Verdict != Admit {
			t.Fatal("what was given back is not there")
		}
	})
}

// What a call costs in money is the exact sum, rounded up to a micro-dollar.
func TestRating(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := func(name string) float64 { return float64(rapid.Int64Range(0, 200_000).Draw(t, name)) / 1000 }
		own := func(name string) *float64 {
			if !rapid.Bool().Draw(t, "a price of its own") {
				return nil
			}
			p := price(name)
			return &p
		}
		s := PriceSpec{Input: price("input"), Cached: own("cached"), Output: price("output"), Reasoning: own("reasoning"), Image: own("image")}
		var p Policy
		p.prices.Add("gpt-*", s)
		n := func(name string) int64 { return rapid.Int64Range(0, 1e9).Draw(t, name) }
		c := TokenCounts{Cached: n("cached"), Image: n("images"), Reasoning: n("reasoning"), Uncounted: n("read beside the input")}
		plain, output := n("input"), n("output")
		c.Input, c.Output = plain+c.Cached+c.Image, output+c.Reasoning
		or := func(a *float64, b float64) float64 {
			if a == nil {
				return b
			}
			return *a
		}
		sum := new(big.Rat)
		for _, k := range []struct {
			n     int64
			price float64
		}{{plain, s.Input}, {c.Cached + c.Uncounted, or(s.Cached, s.Input)}, {c.Image, or(s.Image, s.Input)}, {output, s.Output}, {c.Reasoning, or(s.Reasoning, s.Output)}} {
			milli := big.NewRat(int64(k.price*1000+0.5), 1000)
			sum.Add(sum, milli.Mul(milli, new(big.Rat).SetInt64(k.n)))
		}
		r := p.Rating("gpt-4o")
		got := new(big.Rat).SetInt64(r.Cost(c).Spend)
		if d := new(big.Rat).Sub(got, sum); d.Sign() < 0 || d.Cmp(big.NewRat(1, 1)) >= 0 {
			t.Fatalf("%v micro-dollars, want %v", got, sum.FloatString(3))
		}
		if other := p.Rating("claude"); other.Cost(c).Spend != 0 || other.Cost(c).Input != c.Input {
			t.Fatal("a model without a price costs something")
		}
	})
	half := Share(500_000)
	var p Policy
	p.weights.Add("*", &WeightSpec{Cached: new(Share(0)), Reasoning: &half})
	r := p.Rating("m")
	if c := r.Cost(TokenCounts{Input: 100, Cached: 30, Image: 10, Output: 50, Reasoning: 21, Uncounted: 1000}); c.Input != 70 || c.Output != 29+11 {
		t.Errorf("weighted: %+v", c)
	}
}

// A request tree has so many calls, tokens and retries in all, whatever its branches; then it is refused until its time is
// over, retries by a name of their own.
func TestTree(t *testing.T) {
	p := compiled(t, `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h"}},
		"limits":{"tree":{"default":{"tokens":"1000","calls":"5","retries":"2","in_flight":"3","ttl":"10m"}}}}`)
	l := NewLedger(policytest.NewStore(), 1)
	now := int64(time.Hour)
	path := func(tree string) *Path { return userPath(p, Caller{Tenant: "a", User: "u", Tree: tree}) }
	if path("").Len != 0 {
		t.Error("a request of no tree has a tree's budget")
	}
	ask := func(cost Cost) Decision {
		var r Reservation
		d := l.Reserve(now, path("t"), cost, &r)
		if d.Verdict == Admit {
			l.Settle(now, &r, Cost{Requests: 1, Input: cost.Input / 2, Retries: cost.Retries})
		}
		return d
	}
	for i, row := range []struct {
		cost   Cost
		reason Reason
	}{
		{Cost{Requests: 1, Input: 1001}, RequestTooLarge}, {Cost{Requests: 1, Input: 1000}, None}, {Cost{Requests: 1, Input: 501}, QuotaExhausted},
		{Cost{Requests: 1, Retries: 1}, None}, {Cost{Requests: 1, Retries: 1}, None}, {Cost{Requests: 1, Retries: 1}, RetryBudgetExhausted},
		{Cost{Requests: 1}, None}, {Cost{Requests: 1}, None}, {Cost{Requests: 1}, QuotaExhausted},
	} {
		if d := ask(row.cost); d.Refusal.Reason != row.reason || row.reason != None && d.Refusal.Tier != TierTree {
			t.Errorf("call %d: %+v, want %v", i, d, row.reason)
		}
	}
	if n := admitted(l, now, path("other"), Cost{Requests: 1}, 10); n != 3 {
		t.Errorf("%d calls of another tree in flight, want 3", n)
	}
	d := ask(Cost{Requests: 1})
	if now += int64(d.Refusal.Wait) - 1; ask(Cost{Requests: 1}).Verdict == Admit || d.Refusal.Wait > 10*time.Minute {
		t.Errorf("admitted before the wait of %v was over", d.Refusal.Wait)
	}
	now += 1000 // takes at one instant count a nanosecond apart
	if d := ask(Cost{Requests: 1, Input: 1000}); d.Verdict != Admit {
		t.Errorf("after the tree's time: %+v", d)
	}
}

// The second settlement of a reservation does nothing.
func TestSettleOnce(t *testing.T) {
	l := NewLedger(policytest.NewStore(), 1)
	limit := NewLimit(Enforce, 2, NewMeter(MeterSpec{Dimension: TPM, Limit: 1000, BurstShare: Whole}))
	path := pathOf(map[Tier]*Limit{TierTenant: limit}, map[Tier]string{})
	var other, r Reservation
	l.Reserve(1, path, Cost{Requests: 1, Input: 600}, &other)
	l.Reserve(2, path, Cost{Requests: 1, Input: 300}, &r)
	for range 3 {
		l.Settle(3, &r, Cost{})
	}
	if n := l.InFlight(); n != 1 {
		t.Errorf("%d calls in flight, want 1", n)
	}
	if d := l.Reserve(4, path, Cost{Requests: 1, Input: 401}, &r); d.Verdict == Admit || d.Refusal.Remaining != 400 {
		t.Errorf("%+v", d)
	}
}

// Branches may come to any worker: together they never get more than was reserved, and when all is over everything is as if
// only what they used had ever been taken.
func TestFanoutOverWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := policytest.NewStore()
		ls := []*Ledger{NewLedger(store, 1), NewLedger(store, 2)}
		limit := NewLimit(Enforce, 40, NewMeter(MeterSpec{Dimension: TPM, Limit: 10_000, BurstShare: Whole}))
		path := pathOf(map[Tier]*Limit{TierTenant: limit}, map[Tier]string{})
		other := pathOf(map[Tier]*Limit{TierTenant: limit}, map[Tier]string{TierTenant: "another"})
		now, id := int64(time.Hour), FanoutID{1, 2, 3}
		each, n := Cost{Requests: 1, Input: 100}, rapid.Int64Range(1, 20).Draw(t, "branches")
		if d := ls[0].OpenFanout(now, id, path, each, n, 60e9); d.Verdict != Admit {
			t.Fatalf("%+v", d)
		}
		type branch struct {
			worker int
			res    Reservation
		}
		var open []branch
		joined, used := int64(0), int64(0)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			now += rapid.Int64Range(1, 3e9).Draw(t, "dt")
			w := rapid.IntRange(0, 1).Draw(t, "worker")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				ls[w].Flush(now)
			case 1:
				if len(open) > 0 {
					b := open[0]
					open = open[1:]
					ls[b.worker].Settle(now, &b.res, Cost{Requests: 1, Input: 40})
					used += 40
				}
			default:
				var b branch
				b.worker = w
				if ls[w].JoinFanout(now, id, other, each, &b.res) {
					t.Fatal("another caller took a branch")
				}
				if ls[w].JoinFanout(now, id, path, each, &b.res) {
					joined++
					open = append(open, b)
				} else if joined < n && now < int64(time.Hour)+60e9 {
					t.Fatalf("branch %d of %d was refused", joined+1, n)
				}
			}
			if joined > n {
				t.Fatalf("%d branches, %d were reserved", joined, n)
			}
		}
		for _, b := range open {
			ls[b.worker].Settle(now, &b.res, Cost{Requests: 1, Input: 40})
			used += 40
		}
		now = max(now, int64(time.Hour)+60e9)
		for _, l := range ls {
			l.Flush(now)
			l.Flush(now)
			l.Renew(now)
		}
		if a, b := ls[0].InFlight(), ls[1].InFlight(); a+b != 0 {
			t.Fatalf("%d and %d in flight at the end", a, b)
		}
		var r Reservation
		d := ls[0].Reserve(now, path, Cost{Requests: 1, Input: 10_000}, &r)
		if joined == 0 && d.Verdict != Admit || d.Verdict == Deny && d.Refusal.Remaining < 10_000-used {
			t.Fatalf("%d of 10000 are left, %d were used", d.Refusal.Remaining, used)
		}
		if ls[1].JoinFanout(now, id, path, each, &r) {
			t.Fatal("a branch after the end")
		}
	})
}
