// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/policy"
)

// P13: by whatever clocks, a node's lease is over before the ledger says so.
func TestTheLedgersLeaseIsLonger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		skew := rapid.Float64Range(-4.9e-4, 4.9e-4)
		node, ctl := skew.Draw(t, "node"), skew.Draw(t, "controller")
		offset := rapid.Int64Range(second, 1e15).Draw(t, "offset")
		nodeAt := func(real int64) int64 { return offset + real + int64(float64(real)*node) }
		ctlAt := func(real int64) int64 { return 5*second + real + int64(float64(real)*ctl) }
		p := DefaultParams()
		p.Lease = time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Hour)).Draw(t, "lease"))
		delay := rapid.Int64Range(0, int64(p.Lease))

		n := NewNode("a", 1, p)
		s := n.Share("k", 10*second, NewLocal(nodeAt(0), 10*second, 0))
		n.Hello(Hello{1})
		s.Offer(nodeAt(0), 0, 0, false)
		s.Offer(nodeAt(second), 50, 50, false)
		l := NewLedger(ctlAt(0), "k", plainQuota, p, 1, true)
		sent := rapid.Int64Range(second, 100*second).Draw(t, "sent")
		r := n.Report(nodeAt(sent), false)
		heard := sent + delay.Draw(t, "there")
		l.Report(ctlAt(heard), &r, &r.Holdings[0])
		for _, push := range l.Rebalance(ctlAt(heard), nil) {
			n.Take(nodeAt(heard+delay.Draw(t, "back")), Shares{1, 1, []Grant{push.Grant}})
		}
		holds := l.named["a"].holds
		end := holds[len(holds)-1].end
		real := int64(float64(end-5*second)/(1+ctl)) + 2 // the ledger's end, in real time
		if s.lease.Stage == policy.Leased && nodeAt(real) < s.lease.Until {
			t.Fatalf("at the ledger's end the node has %v left", time.Duration(s.lease.Until-nodeAt(real)))
		}
	})
}

// P14: grants that come late, twice or in another order change nothing; after all of them the newest is in force, and the
// level is no more than what came with grants that were ever in force.
func TestGrantsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(second)
		var all []Grant
		for v := range rapid.IntRange(1, 8).Draw(t, "grants") {
			rate := rapid.Int64Range(0, 100).Draw(t, "rate")
			all = append(all, Grant{Version: uint64(v + 1), Rate: rate, Burst: rate / 2, Tokens: rapid.Int64Range(0, rate/2).Draw(t, "tokens")})
		}
		best, tokens := Grant{}, int64(0)
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 1, 20).Draw(t, "order") {
			before, returned := b.meter.level, b.share.lease.Returned
			b.take(second, all[i])
			if all[i].Version > best.Version {
				best, tokens = all[i], tokens+all[i].Tokens
			} else if b.meter.level != before || b.share.lease.Returned != returned {
				t.Fatalf("an old grant changed the level from %d to %d", before, b.meter.level)
			}
			if b.share.lease.Terms.Rate != best.Rate || b.share.lease.Version != best.Version {
				t.Fatalf("%+v is in force under version %d, the newest is %+v", b.share.lease.Terms, b.share.lease.Version, best)
			}
			if b.meter.level+b.share.lease.Returned != tokens || b.meter.level > best.Burst {
				t.Fatalf("a level of %d and %d returned, %d came", b.meter.level, b.share.lease.Returned, tokens)
			}
		}
		if b.node.Take(second, Shares{2, 1, []Grant{{Key: "k", Version: 99, Number: 1, Ack: true}}}) || b.share.lease.Version == 99 {
			t.Fatal("took a grant of an epoch that it has not heard of")
		}
		if b.node.Take(second, Shares{1, 2, []Grant{{Key: "k", Version: 99, Number: 1, Ack: true}}}) || b.share.lease.Version == 99 {
			t.Fatal("took a grant that was meant for another life")
		}
	})
}

// P14, the other side: a report that comes twice, late, or from an earlier life or epoch changes nothing.
func TestReportsInAnyOrder(t *testing.T) {
	b := newBooks(plainQuota)
	send := func(epoch, incarnation, number, version uint64, rate int64) bool {
		h := Holding{Version: version, Demand: 500, Rate: rate, Returned: 7 * rate}
		return b.l.Report(20*second, &Report{Node: "a", Incarnation: incarnation, Number: number, Epoch: epoch}, &h)
	}
	send(1, 2, 5, 0, 0)
	g := b.grant(20*second, "a")
	send(1, 2, 6, g.Version, g.Rate)
	b.grant(20*second, "a")
	before, pool := *b.l.named["a"], b.l.pool
	if send(0, 9, 9, 0, 900) {
		t.Error("believed a report of an old epoch")
	}
	for _, c := range [][2]uint64{{2, 6}, {2, 5}, {2, 0}, {1, 99}} {
		send(1, c[0], c[1], g.Version, 900)
	}
	if now := *b.l.named["a"]; !reflect.DeepEqual(before, now) || pool != b.l.pool {
		t.Errorf("\n%+v became\n%+v", before, now)
	}
}

// P15: while a new controller learns, nodes have no more in sum than they brought, and move that among themselves.
func TestLearning(t *testing.T) {
	p := DefaultParams()
	b := &books{l: NewLedger(second, "k", plainQuota, p, 3, false)}
	report := func(now int64, node string, v uint64, rate, demand int64) {
		b.number++
		b.l.Report(now, &Report{Node: node, Incarnation: 1, Number: b.number, Epoch: 3}, &Holding{Version: v, Rate: rate, Demand: demand})
	}
	report(2*second, "a", 0, 300, 0)
	report(2*second, "b", 0, 200, 1000)
	grants := map[string]Grant{}
	versions := map[string]uint64{}
	for now := 2 * second; now < second+p.outlast(int64(p.Lease)); now += second / 4 {
		for _, push := range b.l.Rebalance(now, nil) {
			grants[push.Node], versions[push.Node] = push.Grant, push.Version
		}
		if sum := grants["a"].Rate + grants["b"].Rate; sum > 500 {
			t.Fatalf("%d lent out while learning, 500 were brought", sum)
		}
		report(now, "a", versions["a"], grants["a"].Rate, 0)
		report(now, "b", versions["b"], grants["b"].Rate, 1000)
	}
	if grants["b"].Rate < 400 {
		t.Errorf("b has %d, a had no use for its 300", grants["b"].Rate)
	}
	now := 2*second + p.outlast(int64(p.Lease))
	report(now, "b", versions["b"], grants["b"].Rate, 1000)
	if g := b.grant(now, "b"); g.Rate < 600 {
		t.Errorf("b has %d after learning", g.Rate)
	}
}

// quietWorld is a fleet where nothing goes wrong and demand is what the test says.
func quietWorld(nodes int, seconds float64, windowed bool) *world {
	q := Quota{Limit: 1_000_000, Window: 10 * second, Burst: 100_000, Floors: 100_000, Nodes: int64(nodes)}
	if windowed {
		q.Memory = MemoryOf(q.Window, 1e8)
	}
	return newWorld(worldConfig{seed: 3, nodes: nodes, latency: 0.02, skew: 1e-4, seconds: seconds}, q, DefaultParams(), fault{})
}

// P17: under a constant demand shares stand still after three periods, and there is no message but reports and answers.
func TestSharesStandStill(t *testing.T) {
	w := quietWorld(5, 30, false)
	for i, n := range w.nodes {
		n.demand = w.perSecond() * float64(i+1) / 10
	}
	var at map[string]int64
	grants := 0
	for s := 4.0; s < 29; s++ {
		w.at(s, func() {
			now := map[string]int64{}
			for _, n := range w.nodes {
				now[n.name] = n.share.lease.Terms.Rate
				if at != nil && math.Abs(float64(now[n.name]-at[n.name])) > 0.001*float64(w.quota.Limit) {
					t.Errorf("at %v s %s went from %d to %d", s, n.name, at[n.name], now[n.name])
				}
			}
			if at == nil {
				grants = w.grants
			}
			at = now
		})
	}
	if w.run(); w.broken != "" {
		t.Fatal(w.broken)
	}
	if per := float64(w.grants-grants) / 26 / 5; per > 1.1 {
		t.Errorf("%.2f grants per node and second, one answers each report", per)
	}
}

// P18: nobody is denied for longer than two periods and two round trips while there is enough for all.
func TestNobodyIsDeniedWhileThereIsEnough(t *testing.T) {
	for _, windowed := range []bool{false, true} {
		w := quietWorld(4, 60, windowed)
		moved := int64(0)
		for s := 0.0; s < 60; s += 15 {
			w.at(s, func() {
				moved = w.now
				for _, n := range w.nodes {
					n.demand = 0.05 * w.perSecond()
				}
				w.nodes[int(s/15)%4].demand = 0.7 * w.perSecond()
			})
		}
		var check func()
		check = func() {
			wait := int64(3 * time.Second)
			if windowed {
				wait = w.quota.Memory // what was spent elsewhere has to leave the window first
			}
			for _, n := range w.nodes {
				if n.share.denied && w.now-moved > wait {
					t.Errorf("windowed %v: at %.1f s %s is denied, %.1f s after demand moved", windowed, float64(w.now)/1e9, n.name, float64(w.now-moved)/1e9)
				}
			}
			w.at(0.1, check)
		}
		w.at(5, check)
		if w.run(); w.broken != "" {
			t.Fatal(w.broken)
		}
	}
}

// P10, P11: a cut only shrinks, no share is ever below 0, and the fleet comes down to it in the time of a report and an
// acknowledgement; with windows when what was spent has left them.
func TestACutOnlyShrinks(t *testing.T) {
	for _, windowed := range []bool{false, true} {
		w := quietWorld(5, 40, windowed)
		for i, n := range w.nodes {
			n.demand = w.perSecond() * float64(i+1) / 5
		}
		const cut = 300_000
		w.at(20, func() {
			rates := map[string]int64{}
			for _, p := range w.ledger.peers {
				rates[p.name] = p.rateBound(w.now)
			}
			w.lowered = w.now
			w.ledger.SetLimit(w.now, cut)
			for _, push := range w.ledger.Rebalance(w.now, nil) {
				if push.Rate > rates[push.Node] || push.Rate < 0 || push.Cap < 0 || push.Tokens > 0 {
					t.Errorf("a cut makes %d into %+v", rates[push.Node], push.Grant)
				}
			}
		})
		down := 23.0
		if windowed {
			down = 20 + float64(w.quota.Memory)/1e9 + 3
		}
		for s := down; s < 39; s++ {
			w.at(s, func() {
				sum, held := int64(0), int64(0)
				for _, n := range w.nodes {
					sum += n.share.lease.Terms.Rate
					held += n.share.Held(n.local(w.now))
				}
				if sum > cut || windowed && held > cut {
					t.Errorf("windowed %v, at %v s: rates of %d, %d held after a cut to %d", windowed, s, sum, held, cut)
				}
			})
		}
		if w.run(); w.broken != "" {
			t.Fatal(w.broken)
		}
	}
}

// P25: without a controller each node falls to its floor at the end of its lease, and to nothing when that is forgotten.
func TestWithoutAController(t *testing.T) {
	q := Quota{Limit: 1_000_000, Window: 10 * second, Burst: 100_000, Floors: 100_000, Nodes: 4}
	p := DefaultParams()
	p.Forget = 20 * time.Second
	w := newWorld(worldConfig{seed: 3, nodes: 4, latency: 0.02, skew: 1e-4, seconds: 60, crash: 15, outage: 1000}, q, p, fault{})
	for _, n := range w.nodes {
		n.demand = w.perSecond()
	}
	used := int64(0)
	w.at(15+p.Lease.Seconds()+1, func() { used = w.used })
	w.at(15+p.Lease.Seconds()+11, func() {
		if got := w.used - used; got > q.Floors+q.Floors/10 || got < q.Floors*8/10 {
			t.Errorf("%d admitted in 10 s without a controller, the floors are %d", got, q.Floors)
		}
	})
	if w.run(); w.broken != "" {
		t.Fatal(w.broken)
	}
	for _, n := range w.nodes {
		if n.share.lease.Terms.Rate != 0 || !n.share.None(n.local(w.now)) {
			t.Errorf("%s has %+v long after", n.name, n.share.lease.Terms)
		}
	}
}

// After a fail-over and a cut there may be less than the floors that an earlier controller may have given: then nothing is
// lent at all.
func TestACutBelowTheFloors(t *testing.T) {
	q, p := plainQuota, DefaultParams()
	q.Memory, q.Floors, q.Nodes = MemoryOf(q.Window, 0), 500, 10
	b := &books{l: NewLedger(second, "k", q, p, 1, false)}
	b.l.SetLimit(second, 300)
	now := b.l.learnCaps + second
	b.report(now, "a", Holding{Demand: 100})
	if g := b.grant(now, "a"); g.Version == 0 || g.Rate != 0 || g.Cap != 0 || g.Tokens != 0 {
		t.Errorf("granted %+v", g)
	}
	if b.l.seats != 0 {
		t.Error("a node has a place with a floor, and all of them may be taken by nodes that were not heard of")
	}
}

// A share that is not used any more is not reported, and goes back when its lease ends; when it is wanted again, it is there
// at once, also if the ledger has forgotten the node meanwhile.
func TestIdleSharesAreSilent(t *testing.T) {
	for _, forget := range []time.Duration{5 * time.Second, time.Hour} {
		q, p := Quota{Limit: 1_000_000, Window: 10 * second, Burst: 100_000, Floors: 100_000, Nodes: 2}, DefaultParams()
		p.Forget = forget
		w := newWorld(worldConfig{seed: 3, nodes: 2, latency: 0.02, seconds: 80}, q, p, fault{})
		a := w.nodes[0]
		for s, demand := range map[float64]float64{0: 0.5, 10: 0, 60: 0.5} {
			w.at(s, func() { a.demand = demand * w.perSecond() })
		}
		w.at(55, func() {
			if r := a.node.Report(a.local(w.now), false); len(r.Holdings) != 0 {
				t.Errorf("still reports %+v", r)
			}
			if known := w.ledger.named[a.name] != nil; known != (forget == time.Hour) {
				t.Errorf("forget %v: known %v", forget, known)
			}
		})
		w.at(63, func() {
			if a.share.denied || a.share.lease.Terms.Rate < 450_000 {
				t.Errorf("forget %v: it has %+v three seconds after it was wanted again", forget, a.share.lease.Terms)
			}
		})
		if w.run(); w.broken != "" {
			t.Fatal(w.broken)
		}
	}
}

// A node that is gone for good is forgotten, with its floor and its place, a window after its floor.
func TestForget(t *testing.T) {
	q, p := plainQuota, DefaultParams()
	q.Memory, q.Floors = MemoryOf(q.Window, 0), 100
	b := &books{l: NewLedger(second, "k", q, p, 1, true)}
	b.report(second, "a", Holding{Demand: 100})
	if g := b.grant(second, "a"); g.Floor != 100 {
		t.Fatalf("granted %+v", g)
	}
	if s := b.l.States(9 * second); len(s) != 1 || s[0].Rate < 100 || s[0].Window < s[0].Granted || !s[0].Silent || !s[0].Behind {
		t.Errorf("%+v", s)
	}
	end := second + p.outlast(int64(p.Lease)) + p.outlast(int64(p.Forget)) + b.l.memory()
	b.l.Rebalance(end-1, nil)
	if len(b.l.peers) != 1 || b.l.seats != 1 {
		t.Error("forgotten too soon")
	}
	b.l.Rebalance(end, nil)
	if len(b.l.peers)+len(b.l.named) != 0 || b.l.seats != 0 {
		t.Errorf("%+v is still there", b.l.peers)
	}
	b.report(end, "b", Holding{Demand: 100})
	if g := b.grant(end, "b"); g.Floor != 100 {
		t.Errorf("the next gets %+v", g)
	}
}

// A life that ended while it had but its floor may have spent that, and a lease before: the greater of the two.
func TestWhatALifeLeavesBehind(t *testing.T) {
	old := &peer{floor: 50, floorEnd: 1000, acked: 1, holds: []hold{{version: 1, rate: 10, cap: 80, end: 100}}}
	old.trail.note(90, 60, 80, &Holding{Spent: 30, Remembered: 30})
	for _, c := range []struct{ died, at, left int64 }{
		{95, 95, 64},   // 30 remembered, a bucket of 25 for a rate of 50, which refills 7 since the time 80, and 2 for rounding
		{120, 120, 67}, // 10 until its lease ended
		{120, 179, 50},
		{120, 180, 0},
	} {
		p := &peer{}
		q := Quota{Limit: 1000, Window: 100, Burst: 500}
		p.haunt(c.died, 60, old, &q)
		if got := p.spooky(c.at, 60); got != c.left {
			t.Errorf("died at %d: at %d it counts %d, not %d", c.died, c.at, got, c.left)
		}
	}
}
