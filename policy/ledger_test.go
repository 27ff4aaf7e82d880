// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy/policytest"
	"pgregory.net/rapid"
)

func meters(specs ...MeterSpec) *Limit {
	var ms []Meter
	for _, s := range specs {
		ms = append(ms, NewMeter(s))
	}
	return NewLimit(Enforce, 0, ms...)
}

// pathOf makes a path of slotted tiers, the first the narrowest.
func pathOf(limits map[Tier]*Limit, names map[Tier]string) *Path {
	p := new(Path)
	var h Hasher
	for t := range numTiers {
		if l := limits[t]; l != nil {
			key := h.Key(t, names[t])
			p.Add(Step{Tier: t, Space: Space{Tier: t, Slots: MinSlots}, Key: key, Owner: key, Limit: l})
		}
	}
	return p
}

// A world is some workers that share a store, and what they have open.
type world struct {
	t       *rapid.T
	store   *policytest.Store
	workers []*Ledger
	limits  map[Tier]*Limit
	now     int64
	ticked  map[*Ledger]int64
	cost    int64 // the most tokens of input, and of output
	open    []call
	history map[counted][]taken
}

// counted is what one key of a tier has counted in one unit.
type counted struct {
	tier Tier
	name string
	unit Unit
}

type call struct {
	worker int
	res    Reservation
	names  map[Tier]string
	seen   map[counted]int // index into history
}

func newWorld(t *rapid.T, workers int) *world {
	w := &world{t: t, store: policytest.NewStore(), now: 1e9, history: map[counted][]taken{}, ticked: map[*Ledger]int64{}}
	for i := range workers {
		w.workers = append(w.workers, NewLedger(w.store, uint64(i+1)))
	}
	w.cost = rapid.SampledFrom([]int64{1500, 20}).Draw(t, "cost") // the smaller one leaves limits hardly used for a while
	small := func(d Dimension, most int64) MeterSpec {
		return MeterSpec{Dimension: d, Limit: rapid.Int64Range(1, most).Draw(t, d.String()), Jitter: 100 * time.Millisecond}
	}
	w.limits = map[Tier]*Limit{
		TierUser:     meters(small(TPM, 3000)),
		TierTenant:   meters(small(RPM, 200), small(TPM, 5000)),
		TierProvider: meters(small(TPM, 10000), small(RPD, 1000)),
	}
	w.limits[TierUser].InFlight = rapid.SampledFrom([]int64{1, 2, 3, 20, 50}).Draw(t, "in flight")
	return w
}

func (w *world) step() {
	w.now += rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(1, 1e7), rapid.Int64Range(1, 1e9), rapid.Int64Range(1e9, 40e9)).Draw(w.t, "dt")
	for _, l := range w.workers {
		if w.now-w.ticked[l] >= FlushEvery {
			w.ticked[l] = w.now
			l.Renew(w.now)
		}
	}
	if len(w.open) > 0 && rapid.IntRange(0, 2).Draw(w.t, "settle") == 0 {
		w.settle(rapid.IntRange(0, len(w.open)-1).Draw(w.t, "which"), true)
		return
	}
	w.reserve()
}

func (w *world) reserve() {
	names := map[Tier]string{
		TierUser:     rapid.SampledFrom([]string{"u", "v"}).Draw(w.t, "user"),
		TierTenant:   rapid.SampledFrom([]string{"a", "b"}).Draw(w.t, "tenant"),
		TierProvider: "p",
	}
	c := call{worker: rapid.IntRange(0, len(w.workers)-1).Draw(w.t, "worker"), names: names, seen: map[counted]int{}}
	cost := Cost{Requests: 1, Input: rapid.Int64Range(0, w.cost).Draw(w.t, "input"), Output: rapid.Int64Range(0, w.cost).Draw(w.t, "output")}
	path, l := pathOf(w.limits, names), w.workers[c.worker]
	before := w.remaining()
	if !l.ReserveAmple(w.now, path, cost, &c.res) && l.Reserve(w.now, path, cost, &c.res).Verdict != Admit {
		if after := w.remaining(); fmt.Sprint(before) != fmt.Sprint(after) {
			w.t.Fatalf("a denied request changed %v to %v", before, after)
		}
		return
	}
	for i := range c.res.path.Len {
		s := &c.res.path.Steps[i]
		for _, u := range []Unit{Requests, Tokens} {
			id := counted{s.Tier, names[s.Tier], u}
			c.seen[id] = len(w.history[id])
			w.history[id] = append(w.history[id], taken{w.now, cost.In(u), cost.In(u), true})
		}
	}
	w.open = append(w.open, c)
}

func (w *world) settle(i int, partly bool) {
	c := w.open[i]
	w.open = append(w.open[:i], w.open[i+1:]...)
	var actual Cost
	if partly {
		actual = Cost{Requests: 1, Input: c.res.Cost.Input, Output: rapid.Int64Range(0, c.res.Cost.Output).Draw(w.t, "actual")}
	}
	w.workers[c.worker].Settle(w.now, &c.res, actual)
	for id, at := range c.seen {
		h := &w.history[id][at]
		h.open, h.counts = false, actual.In(id.unit)
	}
}

// remaining is what each dimension of each key has left.
func (w *world) remaining() map[string]int64 {
	m := map[string]int64{}
	for _, name := range w.store.Keys() {
		value, _, _ := w.store.Get(name)
		var r record
		if !r.open(value) || r.state != stateLive || r.idle(w.now) {
			continue
		}
		for i := range r.meters {
			m[fmt.Sprintf("%x %v", name, r.meters[i].dimension())] = r.meters[i].remaining(max(w.now, r.clock))
		}
		m[fmt.Sprintf("%x in flight", name)] = r.inFlight(w.now, 0)
	}
	return m
}

func (w *world) checkPromises() {
	for id, history := range w.history {
		for _, m := range w.limits[id.tier].Meters {
			if m.Dimension.Unit() != id.unit {
				continue
			}
			if most := mostInWindow(history, m.rate.window); most > m.rate.limit {
				w.t.Fatalf("%v: %d %v, the limit is %d", id, most, m.Dimension, m.rate.limit)
			}
		}
	}
	open := map[string]int64{}
	for _, c := range w.open {
		open[c.names[TierUser]]++
	}
	for user, n := range open {
		if n > w.limits[TierUser].InFlight {
			w.t.Fatalf("user %s has %d in flight of %d", user, n, w.limits[TierUser].InFlight)
		}
	}
}

// Over all tiers and workers: no window ever holds more than its limit, no user has more in flight than allowed, a denied
// request changes nothing (P6); and when all has been cancelled, everything is as new (P22).
func TestLedgerPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.IntRange(1, 3).Draw(t, "workers"))
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			w.step()
			w.checkPromises()
		}
		for len(w.open) > 0 {
			w.settle(0, false)
		}
		for _, l := range w.workers {
			l.Renew(w.now + FlushEvery)
		}
		if w.now += 25 * 3600e9; len(w.remaining()) > 0 {
			t.Fatalf("left over: %v", w.remaining())
		}
		for i, l := range w.workers {
			if l.InFlight() != 0 {
				t.Fatalf("worker %d still has %d calls in flight", i, l.InFlight())
			}
		}
	})
}

// The binding refusal is the one with the longest wait, or the one that never ends.
func TestRefusalNamesTheBindingLimit(t *testing.T) {
	l := NewLedger(policytest.NewStore(), 1)
	limits := map[Tier]*Limit{
		TierUser:   meters(MeterSpec{Dimension: TPM, Limit: 4000}),
		TierTenant: meters(MeterSpec{Dimension: RPM, Limit: 1}),
	}
	path := pathOf(limits, map[Tier]string{TierUser: "u", TierTenant: "a"})
	var res Reservation
	if d := l.Reserve(1, path, Cost{Requests: 1, Input: 500, Output: 400}, &res); d.Verdict != Admit {
		t.Fatal(d)
	}
	d := l.Reserve(2e9, path, Cost{Requests: 1, Input: 500, Output: 400}, &res)
	if f := d.Refusal; f.Tier != TierTenant || f.Dimension != RPM || f.Reason != LimitExceeded || f.Limit != 1 || f.Remaining != 0 || f.Wait < 58*time.Second {
		t.Errorf("%+v", f)
	}
	d = l.Reserve(2e9, path, Cost{Requests: 1, Input: 500, Output: 3501}, &res)
	if f := d.Refusal; f.Reason != RequestTooLarge || f.Tier != TierUser || f.Reason.Status() != 413 {
		t.Errorf("%+v", f)
	}
}

// A limit in shadow mode says what it would have done, counts, and lets pass.
func TestShadow(t *testing.T) {
	l := NewLedger(policytest.NewStore(), 1)
	limit := meters(MeterSpec{Dimension: TPM, Limit: 1000, Burst: 1000})
	limit.Mode = Shadow
	path := pathOf(map[Tier]*Limit{TierTenant: limit}, map[Tier]string{TierTenant: "a"})
	for i, want := range []Reason{None, None, LimitExceeded, LimitExceeded} {
		var res Reservation
		if d := l.Reserve(1, path, Cost{Requests: 1, Input: 400}, &res); d.Verdict != Admit || d.Shadow.Reason != want {
			t.Errorf("%d: %+v", i, d)
		}
	}
}

// A worker that dies gives its calls in flight back when its lease ends, and a late release takes nobody else's (conc-05).
func TestInFlightLease(t *testing.T) {
	store := policytest.NewStore()
	a, b := NewLedger(store, 1), NewLedger(store, 2)
	limit := &Limit{InFlight: 1}
	path := pathOf(map[Tier]*Limit{TierUser: limit}, map[Tier]string{TierUser: "u"})
	var held, other, third Reservation
	if d := a.Reserve(1, path, Cost{Requests: 1}, &held); d.Verdict != Admit {
		t.Fatal(d)
	}
	if d := b.Reserve(slotLease, path, Cost{Requests: 1}, &other); d.Verdict != Deny || d.Refusal.Dimension != InFlight {
		t.Fatal(d)
	}
	if d := b.Reserve(slotLease+2, path, Cost{Requests: 1}, &other); d.Verdict != Admit {
		t.Fatal("the lease of a dead worker does not end")
	}
	a.Settle(slotLease+3, &held, Cost{Requests: 1})
	if d := a.Reserve(slotLease+4, path, Cost{Requests: 1}, &third); d.Verdict != Deny {
		t.Fatal("a late release took somebody else's slot")
	}
	// One that renews keeps it.
	for now := slotLease; now < 10*slotLease; now += RenewEvery {
		b.Renew(now)
	}
	if d := a.Reserve(10*slotLease, path, Cost{Requests: 1}, &third); d.Verdict != Deny {
		t.Fatal("a renewed lease ended")
	}
}

// A release that the store refuses is made good by the next write (conc-02).
func TestLostRelease(t *testing.T) {
	store := policytest.NewStore()
	l := NewLedger(store, 1)
	path := pathOf(map[Tier]*Limit{TierUser: {InFlight: 1}}, map[Tier]string{TierUser: "u"})
	for i := range int64(50) {
		var res Reservation
		if d := l.Reserve(i*1e9, path, Cost{Requests: 1}, &res); d.Verdict != Admit {
			t.Fatalf("%d: %+v", i, d)
		}
		store.Before = func(op, _ string) bool { return op != "set" }
		l.Settle(i*1e9, &res, Cost{Requests: 1})
		store.Before = nil
	}
}

// A clock that goes back neither freezes a bucket nor empties it; one that jumps opens at most one window (P8).
func TestClockSteps(t *testing.T) {
	l := NewLedger(policytest.NewStore(), 1)
	path := pathOf(map[Tier]*Limit{TierTenant: meters(MeterSpec{Dimension: TPM, Limit: 1000, Burst: 1000})}, map[Tier]string{TierTenant: "a"})
	var res Reservation
	now := int64(7200e9)
	l.Reserve(now, path, Cost{Requests: 1, Input: 400}, &res)
	if d := l.Reserve(now-3600e9, path, Cost{Requests: 1, Input: 600}, &res); d.Verdict != Admit {
		t.Errorf("an hour back: %+v", d)
	}
	if d := l.Reserve(now-3600e9+1, path, Cost{Requests: 1, Input: 100}, &res); d.Verdict != Deny || d.Refusal.Wait > 70*time.Second {
		t.Errorf("%+v", d)
	}
	if d := l.Reserve(now-3600e9+70e9, path, Cost{Requests: 1, Input: 1000}, &res); d.Verdict != Admit {
		t.Errorf("a minute later it has not refilled: %+v", d)
	}
}

// A plainStore is as little of a store as there can be, so that a benchmark measures decisions and not the store: a few values
// in a row, looked through from where the last one was found, copied on Get and on Set as Envoy's are.
type plainStore struct {
	entries []plainEntry
	last    int
}

type plainEntry struct {
	key         string
	value, lent []byte
	cas         uint32
}

func (s *plainStore) find(key string) *plainEntry {
	for range s.entries {
		if s.last == len(s.entries) {
			s.last = 0
		}
		if e := &s.entries[s.last]; e.key == key {
			s.last++
			return e
		}
		s.last++
	}
	return nil
}

func (s *plainStore) Get(key string) ([]byte, uint32, bool) {
	e := s.find(key)
	if e == nil {
		return nil, 0, false
	}
	e.lent = append(e.lent[:0], e.value...)
	return e.lent, e.cas, true
}

func (s *plainStore) Set(key string, data []byte, cas uint32) bool {
	e := s.find(key)
	if e == nil {
		s.entries = append(s.entries, plainEntry{key: strings.Clone(key), cas: 1})
		e = &s.entries[len(s.entries)-1]
	} else if e.cas != cas {
		return false
	}
	e.value = append(e.value[:0], data...)
	e.cas++
	return true
}

// benchWorld is five tiers of two windowed dimensions each, and calls in flight.
func benchWorld() (*Ledger, *Path) {
	store := new(plainStore)
	limits := map[Tier]*Limit{}
	for _, t := range []Tier{TierTool, TierUser, TierTenant, TierEnvironment, TierProvider} {
		limits[t] = meters(MeterSpec{Dimension: TPM, Limit: 60_000_000}, MeterSpec{Dimension: RPM, Limit: 600_000})
		limits[t].InFlight = MaxUnits
	}
	return NewLedger(store, 1), pathOf(limits, map[Tier]string{})
}

// A decision: five buckets read, checked and taken from.
func BenchmarkReserve(b *testing.B) {
	l, path := benchWorld()
	b.ReportAllocs()
	now := int64(1)
	var res Reservation
	for b.Loop() {
		now += 1_000_000
		if d := l.Reserve(now, path, Cost{Requests: 1, Input: 100, Output: 100}, &res); d.Verdict != Admit {
			b.Fatal(d)
		}
	}
}

// A decision and its settlement.
func BenchmarkReserveAndSettle(b *testing.B) {
	l, path := benchWorld()
	b.ReportAllocs()
	now := int64(1)
	var res Reservation
	for b.Loop() {
		now += 1_000_000
		if d := l.Reserve(now, path, Cost{Requests: 1, Input: 100, Output: 100}, &res); d.Verdict != Admit {
			b.Fatal(d)
		}
		l.Settle(now, &res, Cost{Requests: 1, Input: 100, Output: 10})
	}
}

// A denial: five buckets read, nothing written.
func BenchmarkDeny(b *testing.B) {
	l, path := benchWorld()
	path.Steps[0].Limit = meters(MeterSpec{Dimension: RPM, Limit: 1})
	var res Reservation
	l.Reserve(1, path, Cost{Requests: 1, Input: 100, Output: 100}, &res)
	b.ReportAllocs()
	for b.Loop() {
		if d := l.Reserve(2, path, Cost{Requests: 1, Input: 100, Output: 100}, &res); d.Verdict != Deny {
			b.Fatal(d)
		}
	}
}
