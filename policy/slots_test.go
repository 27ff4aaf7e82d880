// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"testing"

	"github.com/weirproxy/weir/policy/policytest"
)

// A claimer is a worker that wants one request of a key.
type claimer struct {
	key      string
	admitted bool
	reason   Reason
}

func userStep(name string, l *Limit) Step {
	var h Hasher
	owner := h.Key(TierTenant, "a")
	return Step{Tier: TierUser, Space: Space{Tier: TierUser, Slots: MinSlots}, Key: h.Key(TierUser, "a", name), Owner: owner, Limit: l}
}

func (c *claimer) worker(store viewOf, vm uint64, l *Limit) policytest.Worker {
	return func(yield func()) {
		ledger := NewLedger(store(yield), vm)
		path := new(Path)
		path.Add(userStep(c.key, l))
		var res Reservation
		d := ledger.Reserve(10e9, path, Cost{Requests: 1}, &res)
		c.admitted, c.reason = d.Verdict == Admit, d.Refusal.Reason
	}
}

// A viewOf gives a worker its view of the store.
type viewOf func(yield func()) Store

// liveRecords counts the live records of each key.
func liveRecords(s *policytest.Store) map[uint64]int {
	m := map[uint64]int{}
	for _, name := range s.Keys() {
		value, _, _ := s.Get(name)
		var r record
		if r.open(value) && r.state == stateLive {
			m[r.key]++
		}
	}
	return m
}

// rival finds a user whose first slot is one of name's.
func rival(name string, l *Limit) string {
	s := userStep(name, l)
	for i := 0; ; i++ {
		r := userStep(fmt.Sprint("rival", i), l)
		if s.Space.way(s.Owner, s.Key, 0) == r.Space.way(r.Owner, r.Key, 1) && s.Space.way(s.Owner, s.Key, 1) != r.Space.way(r.Owner, r.Key, 0) {
			return fmt.Sprint("rival", i)
		}
	}
}

// creationOrders runs some claimers of one request each through every order, over a store that prepare filled, and
// reports what went wrong in any.
func creationOrders(switches int, prepare func(*policytest.Store, *Limit), view func(*policytest.Store, func()) Store, keys ...string) (orders int, faults []string) {
	limit := meters(MeterSpec{Dimension: RPM, Limit: 1})
	orders = policytest.EveryOrder(switches, func(choose func(int) int) {
		store := policytest.NewStore()
		prepare(store, limit)
		var workers []policytest.Worker
		claimers := make([]*claimer, len(keys))
		for i, k := range keys {
			claimers[i] = &claimer{key: k}
			workers = append(workers, claimers[i].worker(func(y func()) Store { return view(store, y) }, uint64(i+1), limit))
		}
		policytest.Run(choose, workers...)
		admitted := map[string]int{}
		for _, c := range claimers {
			if c.admitted {
				admitted[c.key]++
			}
		}
		for _, k := range keys {
			if admitted[k] != 1 {
				faults = append(faults, fmt.Sprintf("%d of key %s admitted", admitted[k], k))
			}
		}
		for k, n := range liveRecords(store) {
			if n > 1 {
				faults = append(faults, fmt.Sprintf("key %x has %d records", k, n))
			}
		}
	})
	return orders, faults
}

// A slotView yields where others may come between: before accesses to slots. What is read elsewhere nobody writes here.
type slotView struct{ policytest.View }

func (v slotView) Get(key string) ([]byte, uint32, bool) {
	if space := (Space{Tier: TierUser}); key[0] != space.letter() || len(key) != 5 {
		return v.Store.Get(key)
	}
	return v.View.Get(key)
}

func plainView(s *policytest.Store, yield func()) Store {
	return slotView{policytest.View{Store: s, Yield: yield}}
}

// fill puts another user's record into the first slot of user u: busy at 10 s, or idle by then.
func fill(at int64) func(*policytest.Store, *Limit) {
	return func(s *policytest.Store, l *Limit) {
		u := userStep("u", l)
		var r loaded
		r.init(at, 12345, l)
		r.take(at, &Cost{Requests: 1})
		r.state = stateLive
		n := u.Space.slotName(u.Space.way(u.Owner, u.Key, 0))
		s.Set(n.str(), r.buf, CreateCAS)
	}
}

// However two or three workers interleave at a key without a record, it gets one record and its one request is admitted
// once (P5).
func TestCreationInEveryOrder(t *testing.T) {
	limit := meters(MeterSpec{Dimension: RPM, Limit: 1})
	nothing := func(*policytest.Store, *Limit) {}
	idle := fill(-100e9)
	for _, x := range []struct {
		name     string
		switches int
		prepare  func(*policytest.Store, *Limit)
		keys     []string
	}{
		{"two workers", 5, nothing, []string{"u", "u"}},
		{"three workers", 3, nothing, []string{"u", "u", "u"}},
		{"first slot busy", 4, fill(9e9), []string{"u", "u"}},
		{"first slot idle", 4, idle, []string{"u", "u"}},
		{"a rival for the slot", 3, nothing, []string{"u", "u", rival("u", limit)}},
		{"a rival for an idle slot", 3, idle, []string{"u", "u", rival("u", limit)}},
	} {
		orders, faults := creationOrders(x.switches, x.prepare, plainView, x.keys...)
		if len(faults) > 0 {
			t.Errorf("%s: %d faults in %d orders, such as: %s", x.name, len(faults), orders, faults[0])
		}
		t.Logf("%s: %d orders", x.name, orders)
	}
}

// A slot that becomes free between the looks of two workers must not give a key two records: worker 1 finds the first slot
// busy and takes the second, worker 2 finds the first one free.
func TestCreationWhileASlotFrees(t *testing.T) {
	limit := meters(MeterSpec{Dimension: RPM, Limit: 1})
	policytest.EveryOrder(4, func(choose func(int) int) {
		store := policytest.NewStore()
		fill(9e9)(store, limit)
		a, b := &claimer{key: "u"}, &claimer{key: "u"}
		view := func(y func()) Store { return plainView(store, y) }
		free := func(yield func()) {
			yield()
			u := userStep("u", limit)
			n := u.Space.slotName(u.Space.way(u.Owner, u.Key, 0))
			_, cas, _ := store.Get(n.str())
			var r record
			r.reset(0, 0, 0)
			store.Set(n.str(), r.buf, cas)
		}
		policytest.Run(choose, a.worker(view, 1, limit), b.worker(view, 2, limit), free)
		u := userStep("u", limit)
		if n := liveRecords(store)[uint64(u.Key)]; n > 1 || a.admitted && b.admitted {
			t.Fatalf("%d records, admitted %v and %v", n, a.admitted, b.admitted)
		}
	})
}

// zeroCAS is what many do: it creates with version 0, which on Envoy overwrites.
type zeroCAS struct{ slotView }

func (z zeroCAS) Set(key string, data []byte, cas uint32) bool {
	if cas == CreateCAS {
		cas = 0
	}
	return z.View.Set(key, data, cas)
}

// The tests above would see it if creation were not safe.
func TestCreationFaultsAreSeen(t *testing.T) {
	nothing := func(*policytest.Store, *Limit) {}
	_, faults := creationOrders(4, nothing, func(s *policytest.Store, y func()) Store {
		return zeroCAS{slotView{policytest.View{Store: s, Yield: y}}}
	}, "u", "u")
	if len(faults) == 0 {
		t.Error("creating with version 0 goes unnoticed")
	}
}

// With more keys than slots the number of records stays, no key is admitted more than its limit, and who finds no slot
// shares a record with others of the tenant.
func TestMoreKeysThanSlots(t *testing.T) {
	store := policytest.NewStore()
	l := NewLedger(store, 1)
	limit := meters(MeterSpec{Dimension: RPM, Limit: 4, Burst: 4})
	admitted := 0
	for i := range 10 * MinSlots {
		path := new(Path)
		path.Add(userStep(fmt.Sprint("user", i), limit))
		for range 6 {
			var res Reservation
			if l.Reserve(10e9, path, Cost{Requests: 1}, &res).Verdict == Admit {
				admitted++
			}
		}
	}
	// One tenant gets an eighth of the slots, and one overflow record.
	if most := MinSlots/columns + 1; store.Len() > most || admitted > 4*most {
		t.Errorf("%d records (at most %d), %d admitted", store.Len(), most, admitted)
	}
	if admitted < 4*MinSlots/columns/2 {
		t.Errorf("only %d admitted", admitted)
	}
	// An hour later all are idle and their slots are taken over.
	before := store.Len()
	for i := range 10 {
		path := new(Path)
		path.Add(userStep(fmt.Sprint("later", i), limit))
		var res Reservation
		if d := l.Reserve(3600e9+int64(i)*100e9, path, Cost{Requests: 1}, &res); d.Verdict != Admit {
			t.Errorf("%+v", d)
		}
	}
	if store.Len() > before+1 {
		t.Errorf("%d records became %d", before, store.Len())
	}
}

// A tenant with endless user names does not take the slots of another's users.
func TestOneTenantTakesAnEighth(t *testing.T) {
	var h Hasher
	space := Space{Tier: TierUser, Slots: 1024}
	bad, good := h.Key(TierTenant, "bad"), h.Key(TierTenant, "good")
	taken := map[uint32]bool{}
	for i := range 100_000 {
		for w := range ways {
			taken[space.way(bad, h.Key(TierUser, "bad", fmt.Sprint(i)), w)] = true
		}
	}
	if len(taken) > 1024/columns {
		t.Errorf("one tenant has %d of 1024 slots", len(taken))
	}
	lost := 0
	for i := range 10_000 {
		hit := 0
		for w := range ways {
			if taken[space.way(good, h.Key(TierUser, "good", fmt.Sprint(i)), w)] {
				hit++
			}
		}
		if hit == ways {
			lost++
		}
	}
	if lost > 30 {
		t.Errorf("%d of 10000 users of another tenant have no slot", lost)
	}
}
