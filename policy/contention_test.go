// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy/policytest"
	"pgregory.net/rapid"
)

// A contender is a worker that takes and settles on buckets that others want at the same time.
type contender struct {
	ledger   *Ledger
	held     []Reservation
	admitted []Cost
	reasons  map[Reason]int
}

// work reserves some calls, and settles some of them, at one instant.
func (c *contender) work(yield func(), store *policytest.Store, vm uint64, path *Path, costs []Cost, ample bool) {
	c.ledger, c.reasons = NewLedger(policytest.View{Store: store, Yield: yield}, vm), map[Reason]int{}
	for i, cost := range costs {
		var res Reservation
		if ample && c.ledger.ReserveAmple(1e9, path, cost, &res) {
			c.held, c.admitted = append(c.held, res), append(c.admitted, cost)
			continue
		}
		if d := c.ledger.Reserve(1e9, path, cost, &res); d.Verdict != Admit {
			c.reasons[d.Refusal.Reason]++
			continue
		}
		c.held, c.admitted = append(c.held, res), append(c.admitted, cost)
		if i%3 == 2 {
			last, actual := len(c.held)-1, Cost{Requests: 1, Input: cost.Input}
			c.ledger.Settle(1e9, &c.held[last], actual)
			c.held, c.admitted[len(c.admitted)-1] = c.held[:last], actual
		}
	}
}

// Under any interleaving of any number of workers, with a store that now and then refuses a write: no tier counts more than
// its limit, all that is held at the end is what was admitted, and when all has been given back everything is as new.
func TestLedgerUnderContention(t *testing.T) {
	reasons := map[Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		store := policytest.NewStore()
		if rapid.Bool().Draw(t, "flaky") {
			store.Before = func(op, _ string) bool { return op != "set" || rapid.IntRange(0, 2).Draw(t, "lost") > 0 }
		}
		limits := map[Tier]*Limit{
			TierUser:     meters(MeterSpec{Dimension: TPM, Limit: rapid.Int64Range(100, 10_000).Draw(t, "user"), BurstShare: Whole, Jitter: time.Second}),
			TierTenant:   meters(MeterSpec{Dimension: RPM, Limit: rapid.Int64Range(1, 300).Draw(t, "tenant"), BurstShare: Whole, Jitter: time.Second}),
			TierProvider: meters(MeterSpec{Dimension: TPM, Limit: rapid.Int64Range(100, 10_000).Draw(t, "provider"), BurstShare: Whole, Jitter: time.Second}),
		}
		limits[TierTenant].InFlight = rapid.SampledFrom([]int64{2, 100}).Draw(t, "in flight")
		path := pathOf(limits, map[Tier]string{})
		cs := make([]contender, rapid.IntRange(2, 4).Draw(t, "workers"))
		workers := make([]policytest.Worker, len(cs))
		for i := range cs {
			costs := make([]Cost, rapid.IntRange(1, 6).Draw(t, "calls"))
			for k := range costs {
				costs[k] = Cost{Requests: 1, Input: rapid.Int64Range(0, 100).Draw(t, "input"), Output: rapid.Int64Range(0, 100).Draw(t, "output")}
			}
			ample := rapid.Bool().Draw(t, "ample")
			workers[i] = func(yield func()) { cs[i].work(yield, store, uint64(i+1), path, costs, ample) }
		}
		policytest.Run(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "next") }, workers...)
		store.Before = nil
		checkContenders(t, store, cs, path)
		for i := range cs {
			for r, n := range cs[i].reasons {
				reasons[r] += n
			}
		}
	})
	if reasons[LimitExceeded] == 0 {
		t.Errorf("nothing was ever refused: %v", reasons)
	}
}

func checkContenders(t *rapid.T, store *policytest.Store, cs []contender, path *Path) {
	var total Cost
	for i := range cs {
		cs[i].ledger.store = store
		cs[i].ledger.Renew(1e9 + FlushEvery)
		for _, c := range cs[i].admitted {
			total = Cost{Requests: total.Requests + c.Requests, Input: total.Input + c.Input, Output: total.Output + c.Output}
		}
	}
	for i := range path.Len {
		for _, m := range path.Steps[i].Limit.Meters {
			if n := total.In(m.Dimension.Unit()); n > m.Limit() {
				t.Fatalf("%v: %d %v admitted, the limit is %d", path.Steps[i].Tier, n, m.Dimension, m.Limit())
			}
		}
		r := recordOf(store, &path.Steps[i])
		for k := range r.meters {
			m := &r.meters[k]
			if got, want := m.ring.sum, total.In(m.dimension().Unit()); got != want {
				t.Fatalf("%v: %d %v are counted, %d were admitted", path.Steps[i].Tier, got, m.dimension(), want)
			}
		}
	}
	for i := range cs {
		for k := range cs[i].held {
			cs[i].ledger.Settle(2e9, &cs[i].held[k], Cost{})
		}
		cs[i].ledger.Renew(2e9)
	}
	for i := range path.Len {
		if r := recordOf(store, &path.Steps[i]); r.state == stateLive && r.inFlight(2e9, 0) != 0 {
			t.Fatalf("%d calls are still in flight", r.inFlight(2e9, 0))
		}
	}
}

// recordOf reads the live record of a step; an empty one if there is none.
func recordOf(store *policytest.Store, s *Step) (r record) {
	for w := range ways {
		n := s.Space.slotName(s.Space.way(s.Owner, s.Key, w))
		if value, _, ok := store.Get(n.str()); ok && r.open(value) && r.isLive(s.Key) {
			return r
		}
	}
	return record{header: new(header)}
}

// A worker that is never fast enough refuses rather than waits, and loses neither a refund nor a slot: it tries again later.
func TestGivingUp(t *testing.T) {
	store := policytest.NewStore()
	l := NewLedger(store, 1)
	limit := meters(MeterSpec{Dimension: TPM, Limit: 1000, BurstShare: Whole})
	limit.InFlight = 1
	path := pathOf(map[Tier]*Limit{TierTenant: limit}, nil)
	never := func(op, _ string) bool { return op != "set" }
	var first, second Reservation
	store.Before = never
	if d := l.Reserve(1e9, path, Cost{Requests: 1, Input: 900}, &first); d.Refusal.Reason != CASContention || d.Refusal.Reason.Status() != 429 || store.Sets > maxTries {
		t.Fatalf("%+v", d)
	}
	store.Before = nil
	if d := l.Reserve(1e9, path, Cost{Requests: 1, Input: 900}, &first); d.Verdict != Admit {
		t.Fatalf("what was refused was charged: %+v", d)
	}
	store.Before = never
	l.Settle(1e9, &first, Cost{})
	store.Before = nil
	if d := l.Reserve(1e9, path, Cost{Requests: 1, Input: 900}, &second); d.Verdict != Deny {
		t.Fatal("the refund cannot have arrived")
	}
	l.Renew(1e9)
	if d := l.Reserve(1e9, path, Cost{Requests: 1, Input: 900}, &second); d.Verdict != Admit {
		t.Fatalf("the refund is lost: %+v", d)
	}
}

// A batch is not used after its time, though no tick has come.
func TestBatchExpires(t *testing.T) {
	store := policytest.NewStore()
	l := NewLedger(store, 1)
	path := pathOf(map[Tier]*Limit{TierTenant: meters(MeterSpec{Dimension: TPM, Limit: 1_000_000, Jitter: time.Second})}, nil)
	var res Reservation
	sets := func(now int64) int {
		before := store.Sets
		if !l.ReserveAmple(now, path, Cost{Requests: 1, Input: 10, Output: 10}, &res) {
			t.Fatal("not ample")
		}
		return store.Sets - before
	}
	sets(1e9)
	if n := sets(1e9 + batchLife - 1); n != 0 {
		t.Errorf("%d writes while there is a batch", n)
	}
	if n := sets(1e9 + batchLife); n != 1 {
		t.Errorf("%d writes after the batch's time", n)
	}
}

func ExampleLedger() {
	ledger := NewLedger(policytest.NewStore(), 1)
	spec := &Spec{APIVersion: APIVersion, Providers: map[string]ProviderSpec{"openai": {Upstream: "https://api.openai.com"}},
		Limits: LimitsSpec{Tenant: map[string]*LimitSpec{"acme": {TPM: new(Count(10_000))}}}}
	p, err := Compile(spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	var path Path
	p.Path(&path, nil, &Caller{Tenant: "acme"})

	var first, second Reservation
	now := int64(time.Minute)
	fmt.Println(ledger.Reserve(now, &path, Cost{Requests: 1, Input: 500, Output: 2000}, &first).Verdict)
	d := ledger.Reserve(now, &path, Cost{Requests: 1, Input: 500, Output: 2000}, &second)
	fmt.Println(d.Verdict, d.Refusal.Reason, d.Refusal.Tier, d.Refusal.Dimension, d.Refusal.Wait)
	ledger.Settle(now, &first, Cost{Requests: 1, Input: 500, Output: 0}) // it used less: the rest comes back
	d = ledger.Reserve(now, &path, Cost{Requests: 1, Input: 500, Output: 2000}, &second)
	fmt.Println(d.Verdict, d.Refusal.Wait)
	// Output:
	// admit
	// deny limit_exceeded tenant tpm 14.999999s
	// deny 2.999999s
}
