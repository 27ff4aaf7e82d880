// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math/big"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy/policytest"
	"pgregory.net/rapid"
)

// A fan-out of several kinds of calls is admitted as a whole, or refused with the largest number that would be: of what the user
// has, or else the tenant, and of what it shares with others half at most. Branches take their part of it, and what none has taken goes back.
func TestFanout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := NewLimit(Enforce, rapid.Int64Range(1, 20).Draw(t, "in flight"),
			NewMeter(MeterSpec{Dimension: TreeCalls, Kind: Stock, Limit: rapid.Int64Range(1, 40).Draw(t, "calls"), Window: time.Hour}))
		user := meters(MeterSpec{Dimension: TPM, Limit: rapid.Int64Range(100, 5000).Draw(t, "tpm")}, MeterSpec{Dimension: RPM, Limit: rapid.Int64Range(1, 60).Draw(t, "rpm")})
		tool := meters(MeterSpec{Dimension: RPS, Limit: rapid.Int64Range(1, 30).Draw(t, "rps")})
		provider := meters(MeterSpec{Dimension: TPM, Limit: rapid.Int64Range(100, 5000).Draw(t, "provider tpm")})
		userTier := rapid.SampledFrom([]Tier{TierUser, TierTenant}).Draw(t, "who has limits")
		llm := pathOf(map[Tier]*Limit{TierTree: tree, userTier: user, TierProvider: provider}, nil)
		search := pathOf(map[Tier]*Limit{TierTool: tool, TierTree: tree, userTier: user}, nil)
		each, n := Cost{Requests: 1, Input: rapid.Int64Range(0, 300).Draw(t, "input")}, rapid.Int64Range(1, 30).Draw(t, "branches")
		tools := rapid.Int64Range(0, 30).Draw(t, "tool calls")
		legs := []Leg{{Path: *llm, Each: each, Calls: n}}
		if tools > 0 {
			legs = append(legs, Leg{Path: *search, Each: Cost{Requests: 1}, Calls: tools})
		}
		world := func() *Ledger {
			l := NewLedger(policytest.NewStore(), 1)
			var r Reservation
			l.Reserve(1, llm, Cost{Requests: 1, Input: 50}, &r)
			return l
		}
		most, per := rapid.Int64Range(1, 40).Draw(t, "most"), rapid.IntRange(1, MaxPerTree).Draw(t, "per tree")
		b := FanoutBounds{Most: most, TTL: time.Minute, PerTree: per}
		l := world()
		d := l.OpenFanout(1e9, FanoutID{1}, ownedBy(7), legs, &b)
		would := func(k int64) bool { // each limit asked by itself, in a world of its own
			part := (tools*k + n - 1) / n
			if k > most || part > most {
				return false
			}
			all := each.Times(k)
			all.Requests += part
			for _, ask := range []struct {
				tier  Tier
				limit *Limit
				cost  Cost
			}{{TierTree, tree, all}, {userTier, user, all.Times(2)}, {TierTool, tool, Cost{Requests: 2 * part}}, {TierProvider, provider, each.Times(2 * k)}} {
				var r Reservation
				if world().Reserve(1e9, pathOf(map[Tier]*Limit{ask.tier: ask.limit}, nil), ask.cost, &r).Verdict != Admit {
					return false
				}
			}
			return true
		}
		k := int64(0)
		for k < n && would(k+1) {
			k++
		}
		if d.Verdict == Admit != (k == n) || d.Verdict == Deny && (d.Fits != k || d.Refusal.Reason != FanoutRefused) {
			t.Fatalf("%d branches: %v, %d would fit, want %d of %d; %+v", n, d.Verdict, d.Fits, k, n, d.Refusal)
		}
		if d.Verdict == Deny {
			l.Renew(2e9)
			if d = l.OpenFanout(1e9, FanoutID{1}, ownedBy(7), legs[:1], &b); d.Verdict == Deny {
				return
			}
			legs, tools = legs[:1], 0
		}
		l.Flush(19e8)
		taken, searched := rapid.Int64Range(0, n).Draw(t, "taken"), rapid.Int64Range(0, tools).Draw(t, "searched")
		for i := range taken + searched {
			g := &legs[0]
			if i >= taken {
				g = &legs[1]
			}
			var branch Reservation
			if !l.JoinFanout(2e9, FanoutID{1}, ownedBy(7), &g.Path, g.Each, &branch) {
				t.Fatal("a branch found nothing left")
			}
			l.Settle(2e9, &branch, Cost{})
		}
		neighbour := ownedBy(8) // one whose fan-outs are in the same slots
		for fanoutName(neighbour, 1) != fanoutName(ownedBy(7), 0) {
			neighbour.Tree++
		}
		var more Reservation
		if l.JoinFanout(2e9, FanoutID{1}, ownedBy(7), llm, each.Times(n-taken+1), &more) || l.JoinFanout(2e9, FanoutID{1}, neighbour, llm, Cost{Requests: 1}, &more) ||
			l.JoinFanout(2e9, FanoutID{2}, ownedBy(7), llm, Cost{Requests: 1}, &more) {
			t.Fatal("a branch got what was not reserved for it")
		}
		l.Renew(62e9)
		if l.InFlight() != 1 { // the one that was there before
			t.Fatalf("%d in flight", l.InFlight())
		}
		if d := l.OpenFanout(62e9, FanoutID{3}, ownedBy(7), legs, &b); d.Verdict != Admit {
			t.Fatalf("what was given back is not there: %+v", d)
		}
	})
}

// ownedBy is one of several owners of one tenant.
func ownedBy(n Key) FanoutOwner { return FanoutOwner{1, n} }

// Trees that a tenant makes up get it no more than an eighth of what a worker keeps open, and no other tenant is refused for them.
func TestFanoutsOfOneTenant(t *testing.T) {
	path := pathOf(map[Tier]*Limit{TierTree: meters(MeterSpec{Dimension: RPM, Limit: 100_000, BurstShare: Whole})}, nil)
	legs, b := []Leg{{Path: *path, Each: Cost{Requests: 1}, Calls: 1}}, FanoutBounds{Most: 1, TTL: time.Minute, PerTree: 1}
	l := NewLedger(policytest.NewStore(), 1)
	open := func(tenant Key, n int) (open int) {
		for i := range n {
			if l.OpenFanout(1, FanoutID{1}, FanoutOwner{tenant, Key(mix(uint64(tenant)<<32 + uint64(i)))}, legs, &b).Verdict == Admit {
				open++
			}
		}
		return open
	}
	if n := open(7, 1000); n != maxOpen/8 {
		t.Errorf("one tenant has %d", n)
	}
	for tenant := range Key(50) {
		if n := open(100+tenant, 4); n != 4 {
			t.Errorf("tenant %d has %d", tenant, n)
		}
	}
	if n := open(200, 100) + open(201, 100); len(l.fanouts) != maxOpen {
		t.Errorf("%d are open, %d of them of the last", len(l.fanouts), n)
	}
	for now := int64(62e9); len(l.fanouts) > 0; now += FlushEvery {
		if l.Flush(now); now > 63e9 {
			t.Fatalf("%d are still open", len(l.fanouts))
		}
	}
	var r Reservation
	if d := l.Reserve(63e9, path, Cost{Requests: 100_000}, &r); d.Verdict != Admit {
		t.Errorf("not all came back: %+v", d)
	}
}

// An owner has so many fan-outs open at once, whatever workers open them at the same time.
func TestFanoutsPerTree(t *testing.T) {
	path := pathOf(map[Tier]*Limit{TierTree: meters(MeterSpec{Dimension: RPM, Limit: 1000, BurstShare: Whole})}, nil)
	legs := []Leg{{Path: *path, Each: Cost{Requests: 1}, Calls: 2}}
	b := FanoutBounds{Most: 10, TTL: time.Minute, PerTree: 1}
	orders := policytest.EveryOrder(2, func(choose func(n int) int) {
		store := policytest.NewStore()
		admitted := 0
		worker := func(vm uint64) policytest.Worker {
			return func(yield func()) {
				l := NewLedger(yielding{store, yield}, vm)
				if l.OpenFanout(1, FanoutID{byte(vm)}, ownedBy(7), legs, &b).Verdict == Admit {
					admitted++
				}
			}
		}
		policytest.Run(choose, worker(1), worker(2))
		if admitted > 1 {
			t.Fatal("two are open, one is allowed")
		}
		var r Reservation
		l := NewLedger(store, 3)
		if l.Reserve(2, path, Cost{Requests: 1000 - 2*int64(admitted)}, &r).Verdict != Admit {
			t.Fatal("one that was refused keeps what it took")
		}
	})
	t.Logf("%d orders", orders)
	l := NewLedger(policytest.NewStore(), 1)
	b.PerTree = 2
	for i, want := range []Verdict{Admit, Admit, Deny} {
		if d := l.OpenFanout(1, FanoutID{byte(i)}, ownedBy(7), legs, &b); d.Verdict != want {
			t.Errorf("%d: %+v", i, d)
		}
	}
	if d := l.OpenFanout(1, FanoutID{9}, ownedBy(8), legs, &b); d.Verdict != Admit {
		t.Errorf("of another owner: %+v", d)
	}
	var r Reservation
	for l.JoinFanout(2, FanoutID{0}, ownedBy(7), path, Cost{Requests: 1}, &r) {
		l.Settle(2, &r, Cost{Requests: 1})
	}
	if d := l.OpenFanout(3, FanoutID{4}, ownedBy(7), legs, &b); d.Verdict != Admit {
		t.Errorf("after one was used up: %+v", d)
	}
}

// yielding lets others have their turn before each access.
type yielding struct {
	Store
	yield func()
}

func (s yielding) Get(key string) ([]byte, uint32, bool) {
	s.yield()
	return s.Store.Get(key)
}

func (s yielding) Set(key string, value []byte, cas uint32) bool {
	s.yield()
	return s.Store.Set(key, value, cas)
}

// A branch counts as of when it is sent, also if it is sent by another worker just before the one that reserved it moves it along;
// of one that does not do so any more nobody takes a branch.
func TestBranchCountsWhenSent(t *testing.T) {
	store := policytest.NewStore()
	ls := []*Ledger{NewLedger(store, 1), NewLedger(store, 2)}
	path := pathOf(map[Tier]*Limit{TierProvider: meters(MeterSpec{Dimension: RPS, Limit: 10, BurstShare: Whole})}, nil)
	legs, now := []Leg{{Path: *path, Each: Cost{Requests: 1}, Calls: 5}}, int64(time.Hour)
	ls[0].OpenFanout(now, FanoutID{1}, ownedBy(7), legs, &FanoutBounds{Most: 10, TTL: time.Minute, PerTree: 2})
	var r Reservation
	for range 4 {
		if !ls[1].JoinFanout(now+400e6, FanoutID{1}, ownedBy(7), path, legs[0].Each, &r) {
			t.Fatal("a branch did not get its part")
		}
	}
	for n, want := range map[int64]Verdict{7: Deny, 6: Admit} {
		var r Reservation
		if d := ls[1].Reserve(now+1200e6, path, Cost{Requests: n}, &r); d.Verdict != want {
			t.Errorf("%d more within the second: %+v", n, d)
		}
		ls[1].Settle(now+1200e6, &r, Cost{})
	}
	if ls[1].JoinFanout(now+moveGrace+1, FanoutID{1}, ownedBy(7), path, legs[0].Each, &r) {
		t.Error("a branch of what nobody looks after")
	}
	ls[0].Flush(now + 1300e6)
	if !ls[1].JoinFanout(now+1300e6, FanoutID{1}, ownedBy(7), path, legs[0].Each, &r) {
		t.Error("no branch of what somebody looks after again")
	}
}

// What is sent holds the limit in every window, whether it was reserved or not: what is held counts all the time, and a branch when
// it is sent. And what was reserved is there when its branches come.
func TestFanoutsHoldTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := policytest.NewStore()
		ls := []*Ledger{NewLedger(store, 1), NewLedger(store, 2)}
		dim := rapid.SampledFrom([]Dimension{RPS, RPM, TPM}).Draw(t, "dimension")
		kind := rapid.SampledFrom([]WindowKind{Sliding, Continuous, Fixed}).Draw(t, "kind")
		spec := MeterSpec{Dimension: dim, Kind: kind, Limit: rapid.Int64Range(10, 60).Draw(t, "limit"), BurstShare: Whole}
		limit := NewLimit(Enforce, rapid.Int64Range(0, 50).Draw(t, "in flight"), NewMeter(spec))
		path := pathOf(map[Tier]*Limit{TierProvider: limit}, nil)
		window := int64(dim.Window())
		type sending struct{ at, n int64 }
		var sent []sending
		type fanout struct {
			id   FanoutID
			left int64
			ends int64
		}
		var fans []*fanout
		var open []Reservation
		each := Cost{Requests: 1, Input: 1}
		now := int64(time.Hour)
		now -= now % window
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			for dt := rapid.SampledFrom([]int64{0, 10e6, 40e6, 90e6, window - 120e6, window - 60e6, window - 10e6, window / 2, 2 * window}).Draw(t, "dt"); dt > 0; dt -= 50e6 {
				now += min(dt, 50e6)
				ls[0].Flush(now)
				ls[1].Flush(now)
				if window > 1e9 && dt > 5e9 { // skip ahead: what is held moves along
					now, dt = now+400e6, dt-400e6
				}
			}
			l := ls[rapid.IntRange(0, 1).Draw(t, "worker")]
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				n := rapid.Int64Range(1, 30).Draw(t, "branches")
				f := &fanout{FanoutID{byte(len(fans) + 1)}, n, now + 20e9}
				if l.OpenFanout(now, f.id, FanoutOwner{1, Key(len(fans))}, []Leg{{Path: *path, Each: each, Calls: n}}, &FanoutBounds{Most: 100, TTL: 20 * time.Second, PerTree: 1}).Verdict == Admit {
					fans = append(fans, f)
				}
			case 1, 2:
				n := rapid.Int64Range(1, 30).Draw(t, "calls")
				var r Reservation
				if cost := each.Times(n); l.Reserve(now, path, cost, &r).Verdict == Admit {
					sent, open = append(sent, sending{now, n}), append(open, r)
				}
			default:
				if len(fans) == 0 {
					continue
				}
				k := rapid.IntRange(0, len(fans)-1).Draw(t, "fan-out")
				f := fans[k]
				var r Reservation
				if l.JoinFanout(now, f.id, FanoutOwner{1, Key(k)}, path, each, &r) {
					sent, open = append(sent, sending{now, 1}), append(open, r)
					f.left--
				} else if f.left > 0 && now < f.ends {
					t.Fatal("a branch did not get its part")
				}
			}
			if len(open) > 0 && rapid.Bool().Draw(t, "one ends") {
				ls[0].Settle(now, &open[0], open[0].Cost)
				open = open[1:]
			}
		}
		for i := range sent {
			sum, most := int64(0), spec.Limit
			for _, s := range sent[i:] {
				if kind == Fixed && s.at/window == sent[i].at/window || kind != Fixed && s.at < sent[i].at+window {
					sum += s.n
				}
			}
			if kind == Continuous { // in a window as much again refills
				most += spec.Limit + (spec.Limit*moveEvery+window-1)/window
			}
			if sum > most {
				t.Fatalf("%d in a window of %v, the limit is %d", sum, time.Duration(window), spec.Limit)
			}
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
		legs, owner := []Leg{{Path: *path, Each: each, Calls: n}}, ownedBy(7)
		if d := ls[0].OpenFanout(now, id, owner, legs, &FanoutBounds{Most: 20, TTL: time.Minute, PerTree: 1}); d.Verdict != Admit {
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
				ls[0].Flush(now) // as it does every 20 ms
				if ls[w].JoinFanout(now, id, owner, other, each, &b.res) {
					t.Fatal("another caller took a branch")
				}
				if ls[w].JoinFanout(now, id, owner, path, each, &b.res) {
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
		if ls[1].JoinFanout(now, id, owner, path, each, &r) {
			t.Fatal("a branch after the end")
		}
	})
}
