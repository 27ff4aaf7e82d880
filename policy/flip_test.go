// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy/policytest"
)

// admitted is how many calls of the cost are admitted in a row, up to most.
func admitted(l *Ledger, now int64, path *Path, cost Cost, most int) (n int) {
	for n < most {
		var r Reservation
		if l.Reserve(now, path, cost, &r).Verdict != Admit {
			return n
		}
		n++
	}
	return n
}

// Requests that began before a dimension was added must not wipe it out for those that began after.
func TestOldPolicyKeepsNewDimension(t *testing.T) {
	l := NewLedger(policytest.NewStore(), 1)
	tpm := MeterSpec{Dimension: TPM, Limit: 1_000_000}
	old := pathOf(map[Tier]*Limit{TierTenant: meters(tpm)}, nil)
	both := pathOf(map[Tier]*Limit{TierTenant: meters(MeterSpec{Dimension: RPM, Limit: 30, BurstShare: Whole}, tpm)}, nil)
	now, n := int64(time.Hour), 0
	for range 5 {
		n += admitted(l, now, both, Cost{Requests: 1, Input: 1, Output: 1}, 5) + admitted(l, now, old, Cost{Requests: 1, Input: 1, Output: 1}, 1)
	}
	if n += admitted(l, now, both, Cost{Requests: 1, Input: 1, Output: 1}, 100); n != 30 {
		t.Errorf("%d requests, rpm is 30", n)
	}
	now += int64(2 * time.Minute) // nobody asks for requests any more
	admitted(l, now, old, Cost{Requests: 1, Input: 1, Output: 1}, 1)
	var r loaded
	if l.load(now, &old.Steps[0], &r); len(r.meters) != 1 {
		t.Errorf("%d meters after the requests' window", len(r.meters))
	}
}

// A limit in shadow mode lets everything pass, even what no number can hold; later it must be none the worse for it.
func TestShadowOfAnything(t *testing.T) {
	for _, later := range []time.Duration{2 * time.Second, time.Minute, 3 * time.Minute, 30 * 24 * time.Hour} {
		l := NewLedger(policytest.NewStore(), 1)
		shadow, enforced := meters(MeterSpec{Dimension: TPM, Limit: 20_000}), meters(MeterSpec{Dimension: TPM, Limit: 20_000})
		shadow.Mode = Shadow
		now := int64(time.Hour)
		var r Reservation
		l.Reserve(now, pathOf(map[Tier]*Limit{TierTenant: shadow}, nil), Cost{Requests: 1, Input: 10, Output: math.MaxInt64 / 2}, &r)
		l.Settle(now+1e9, &r, Cost{Requests: 1})
		if admitted(l, now+int64(later), pathOf(map[Tier]*Limit{TierTenant: enforced}, nil), Cost{Requests: 1, Input: 10, Output: 10}, 1) != 1 {
			t.Errorf("%v later: refused", later)
		}
	}
}

func userPath(p *Policy, c Caller) *Path {
	to := new(Path)
	p.Path(to, nil, &c)
	return to
}

func inventedUsers(l *Ledger, now int64, p *Policy, n int) {
	for i := range n {
		admitted(l, now, userPath(p, Caller{Tenant: "acme", User: fmt.Sprint("invented", i)}), Cost{Requests: 1, Input: 1}, 1)
	}
}

// A key that was counted in the overflow record takes that along when it gets a slot.
func TestOverflowIsTakenAlong(t *testing.T) {
	p := compiled(t, `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h"}},"limits":{"user":{"default":{"tpm":"6000","burst":"100%"}}}}`)
	l := NewLedger(policytest.NewStore(), 1)
	now := int64(time.Hour)
	inventedUsers(l, now, p, 4000)
	now += int64(time.Minute)
	for i := range 1000 {
		path := userPath(p, Caller{Tenant: "acme", User: fmt.Sprint("late", i)})
		var r Reservation
		l.Reserve(now, path, Cost{Requests: 1}, &r)
		if !r.spill[0] {
			continue
		}
		n := 0
		for range 4 { // the slots of the others become free meanwhile
			n += admitted(l, now, path, Cost{Requests: 1, Input: 1000}, 100)
			now += int64(2 * time.Second)
		}
		if n > 6 {
			t.Errorf("%d000 tokens in 8 s, tpm is 6000", n)
		}
		return
	}
	t.Error("no key spilled: the test tests nothing")
}

// Who has a name in the policy, or is vouched for, keeps its counters and its limit whatever others invent.
func TestInventedTenantsStarveNobody(t *testing.T) {
	p := compiled(t, `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h"}},
		"limits":{"tenant":{"default":{"rpm":"100"},"acme":{"rpm":"1000"}},"user":{"default":{"rpm":"20"}}}}`)
	l := NewLedger(policytest.NewStore(), 1)
	now := int64(time.Hour)
	for i := range 30_000 {
		admitted(l, now, userPath(p, Caller{Tenant: fmt.Sprint("key-", i), User: "u"}), Cost{Requests: 1, Input: 1, Output: 1}, 1)
	}
	for _, c := range []Caller{{Tenant: "acme", User: "alice"}, {Tenant: "globex", User: "bob", Vouched: true}} {
		if n := admitted(l, now, userPath(p, c), Cost{Requests: 1, Input: 1, Output: 1}, 100); n != 5 {
			t.Errorf("%s: %d requests at once, want a user's burst of 5", c.Tenant, n)
		}
	}
}

// A tenant that gets an entry of its own, or loses it, keeps what it has used.
func TestNamingKeepsCounters(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h"}},"limits":{"tenant":{"default":{"rpm":"20","burst":"100%%"}%s}}}`
	without, with := compiled(t, fmt.Sprintf(policy, "")), compiled(t, fmt.Sprintf(policy, `,"acme":{"rpm":"20","burst":"100%"}`))
	for _, order := range [][]*Policy{{without, with}, {with, without}} {
		l := NewLedger(policytest.NewStore(), 1)
		now := int64(time.Hour)
		n := admitted(l, now, userPath(order[0], Caller{Tenant: "acme"}), Cost{Requests: 1, Input: 1, Output: 1}, 12)
		if n += admitted(l, now, userPath(order[1], Caller{Tenant: "acme"}), Cost{Requests: 1, Input: 1, Output: 1}, 100); n != 20 {
			t.Errorf("%d requests, rpm is 20", n)
		}
	}
}

// A user's entry with a slash is for that tenant's user, not for a user who calls itself so.
func TestUserNames(t *testing.T) {
	p := compiled(t, `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h"}},
		"limits":{"user":{"default":{"rpm":"2"},"acme/alice":{"rpm":"1000"},"bob":{"rpm":"50"}}}}`)
	for c, want := range map[Caller]int64{{Tenant: "acme", User: "alice"}: 1000, {Tenant: "evil", User: "acme/alice"}: 2, {Tenant: "evil", User: "bob"}: 50} {
		if got := userPath(p, c).Steps[0].Limit.Meters[0].Limit(); got != want {
			t.Errorf("%+v: rpm %d, want %d", c, got, want)
		}
	}
}

// In a window that is not much longer than a batch lives, calls are reserved one by one.
func TestNoBatchInShortWindows(t *testing.T) {
	for _, w := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 500 * time.Millisecond, time.Second} {
		store := policytest.NewStore()
		a, b := NewLedger(store, 1), NewLedger(store, 2)
		path := pathOf(map[Tier]*Limit{TierTenant: meters(MeterSpec{Dimension: RPS, Limit: 1_000_000, Window: w, BurstShare: Whole, Jitter: 100 * time.Millisecond})}, nil)
		now := int64(time.Hour)
		var r Reservation
		a.ReserveAmple(now, path, Cost{Requests: 1, Input: 1, Output: 1}, &r)
		now += batchLife - 1
		n := int64(admitted(b, now, path, Cost{Requests: 1, Input: 1, Output: 1}, 2_000_000))
		for range maxBatch - 1 {
			if a.ReserveAmple(now, path, Cost{Requests: 1, Input: 1, Output: 1}, &r) {
				n++
			}
		}
		if limit := path.Steps[0].Limit.Meters[0].Limit(); n > limit {
			t.Errorf("window %v: %d at one instant, the limit is %d", w, n, limit)
		}
	}
}

// A worker takes none ahead of a limit of a few calls or retries: it would be all there is, and the other workers would refuse.
func TestNoBatchOfFew(t *testing.T) {
	for _, few := range []int64{1, 2, 3, 7} {
		for _, spec := range []MeterSpec{
			{Dimension: RPM, Limit: few, BurstShare: Whole},
			{Dimension: TreeCalls, Kind: Stock, Limit: few, Window: time.Minute},
			{Dimension: TreeRetries, Kind: Stock, Limit: few, Window: time.Minute},
		} {
			store := policytest.NewStore()
			a, b := NewLedger(store, 1), NewLedger(store, 2)
			path := pathOf(map[Tier]*Limit{TierTree: meters(spec)}, nil)
			now, cost := int64(time.Hour), Cost{Requests: 1, Retries: 1, Input: 1, Output: 1}
			var r Reservation
			if !a.ReserveAmple(now, path, cost, &r) {
				t.Errorf("%v of %d: the first is not ample", spec.Dimension, few)
			}
			if n := admitted(b, now, path, cost, 10); int64(n) != few-1 {
				t.Errorf("%v of %d: one worker admits one, the other %d", spec.Dimension, few, n)
			}
		}
	}
}
