// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"
)

// These rules about tokens are broken so rarely by chance that random runs do not show it. Each has a test of its own, which
// fails without it.

const second = int64(time.Second)

var plainQuota = Quota{Limit: 1000, Window: 10 * second, Burst: 500, Nodes: 1}

// A bench is one node without a network.
type bench struct {
	node  *Node
	share *Share
	meter *Local
}

func newBench(now int64) *bench {
	b := &bench{node: NewNode("a", 1, DefaultParams()), meter: NewLocal(now, 10*second, 0)}
	b.share = b.node.Share("k", 10*second, b.meter)
	b.node.Hello(Hello{1})
	b.node.Report(now, false)
	return b
}

func (b *bench) take(now int64, g Grant) bool {
	g.Key, g.Number = "k", max(g.Number, 1)
	if g.Lease == 0 {
		g.Lease = 10 * second
	}
	return b.node.Take(now, Shares{1, 1, []Grant{g}})
}

// Tokens count only with the very grant that brings them: not if a later one came first, and not twice.
func TestTokensOfAnOvertakenGrantAreLost(t *testing.T) {
	b := newBench(second)
	first := Grant{Version: 1, Rate: 100, Burst: 50, Tokens: 20}
	b.take(second, Grant{Version: 2, Rate: 100, Burst: 50, Tokens: 7})
	b.take(second, first)
	b.take(second, Grant{Version: 2, Rate: 100, Burst: 50, Tokens: 7})
	if got := b.meter.Level(second); got != 7 {
		t.Errorf("the level is %d, only 7 came with the grant that is in force", got)
	}
}

// Tokens count only before the end of the lease that they came with: by then the ledger has forgotten them.
func TestTokensOfALapsedGrantAreLost(t *testing.T) {
	b := newBench(second)
	b.take(12*second, Grant{Version: 1, Rate: 100, Burst: 50, Floor: 50, Forget: 3600 * second, Tokens: 20})
	if got := b.meter.Level(12 * second); got > 5 { // what the floor has refilled since
		t.Errorf("the level is %d after a grant whose lease was over when it came", got)
	}
	if b.share.Terms(12*second).Rate != 50 {
		t.Errorf("the node has %+v, not its floor", b.share.Terms(12*second))
	}
}

// What does not fit into the burst is given back, once; what a lease's end takes is not.
func TestReturnedTokens(t *testing.T) {
	b := newBench(second)
	b.take(second, Grant{Version: 1, Rate: 100, Burst: 50, Tokens: 50})
	b.take(second, Grant{Version: 2, Rate: 40, Burst: 20})
	r := b.node.Report(second, true)
	if h := r.Holdings[0]; h.Returned != 30 || h.Version != 2 {
		t.Errorf("reported %+v, 30 did not fit", h)
	}
	b.share.Settle(20 * second)
	if b.share.lease.Returned != 30 {
		t.Errorf("%d given back, the end of a lease gives nothing back", b.share.lease.Returned)
	}
}

// A books is a ledger whose node is made up.
type books struct {
	l      *Ledger
	number uint64
}

func newBooks(q Quota) *books { return &books{l: NewLedger(second, "k", q, DefaultParams(), 1, true)} }

func (b *books) report(now int64, node string, h Holding) {
	b.number++
	b.l.Report(now, &Report{Node: node, Incarnation: 1, Number: b.number, Epoch: 1}, &h)
}

func (b *books) grant(now int64, node string) (g Grant) {
	for _, p := range b.l.Rebalance(now, nil) {
		if p.Node == node {
			g = p.Grant
		}
	}
	return g
}

// The pool never holds more than the burst of what no node may be spending: else pool and bursts were more than the quota's.
func TestPoolIsCutToWhatIsFree(t *testing.T) {
	b := newBooks(plainQuota)
	b.l.Rebalance(second, nil)
	b.l.Rebalance(60*second, nil)
	if b.l.pool != 500 {
		t.Fatalf("the pool has %d after a minute, its burst is 500", b.l.pool)
	}
	b.report(60*second, "a", Holding{Demand: 600})
	g := b.grant(60*second, "a")
	if free := b.l.quota.burstOf(1000 - g.Rate); b.l.pool > free || g.Tokens > g.Burst {
		t.Errorf("the pool has %d and the node %d of %d: more than the burst", b.l.pool, g.Tokens, g.Rate)
	}
	b.l.pool = 10
	b.report(60*second, "b", Holding{Demand: 100})
	if g := b.grant(60*second, "b"); g.Tokens != 10 || b.l.pool != 0 {
		t.Errorf("%d of 10 came with a rate of %d, and %d are left", g.Tokens, g.Rate, b.l.pool)
	}
	b.l.pool = 400
	b.report(61*second, "a", Holding{Version: 1, Demand: 600, Rate: g.Rate})
	g = b.grant(61*second, "a")
	if free := b.l.quota.burstOf(1000 - g.Rate); b.l.pool > free {
		t.Errorf("the pool has %d, the burst of what is free is %d", b.l.pool, free)
	}
}

// grown gives books where node a holds 800 of 1000 under version 1, and has been asked down to nothing.
func grown(t *testing.T) (*books, Grant) {
	b := newBooks(plainQuota)
	b.l.Rebalance(second, nil)
	b.report(10*second, "a", Holding{Demand: 800})
	g := b.grant(10*second, "a")
	if g.Rate < 800 {
		t.Fatalf("the only node gets %d", g.Rate)
	}
	b.report(11*second, "a", Holding{Version: g.Version, Demand: 0, Rate: g.Rate})
	return b, g
}

// Returned tokens go into the pool with the acknowledgement of the shrink.
func TestReturnedTokensReachThePool(t *testing.T) {
	b, _ := grown(t)
	down := b.grant(11*second, "a")
	b.l.pool = 0
	b.report(12*second, "a", Holding{Version: down.Version, Rate: down.Rate, Returned: 30})
	if b.l.pool != 30 {
		t.Errorf("the pool has %d of 30 returned", b.l.pool)
	}
	b.report(13*second, "a", Holding{Version: down.Version, Rate: down.Rate, Returned: 30})
	if b.l.pool != 30 {
		t.Errorf("the pool has %d: tokens were counted twice", b.l.pool)
	}
}

// heldBooks gives books where the node may hold what is listed, and has acknowledged version 1.
func heldBooks(t *testing.T, holds ...hold) *books {
	b, _ := grown(t)
	p := b.l.named["a"]
	p.holds, p.acked, p.version, b.l.pool = holds, 1, 3, 0
	return b
}

// They do not if a grant that the node may have held meanwhile has ended: its burst has been lent out since.
func TestReturnedTokensOfALapsedGrantAreLost(t *testing.T) {
	for _, c := range []struct{ end, pool int64 }{{13 * second, 30}, {11 * second, 0}} {
		b := heldBooks(t, hold{version: 1, rate: 900, end: c.end}, hold{version: 2, rate: 500, end: 20 * second}, hold{version: 3, rate: 50, end: 20 * second})
		if b.report(12*second, "a", Holding{Version: 3, Rate: 50, Returned: 30}); b.l.pool != c.pool {
			t.Errorf("the first grant ended at %d s, it is 12: the pool got %d", c.end/second, b.l.pool)
		}
	}
}

// Nor if a grant since the last acknowledgement is not listed any more by itself.
func TestReturnedTokensOfUnlistedGrantsAreLost(t *testing.T) {
	b := heldBooks(t, hold{version: 2, rate: 900, end: 20 * second}, hold{version: 3, rate: 50, end: 20 * second})
	if b.report(12*second, "a", Holding{Version: 3, Rate: 50, Returned: 30}); b.l.pool != 0 {
		t.Errorf("the pool got %d, and the ledger cannot know that they were covered", b.l.pool)
	}
}

// No more is credited than the burst by which the node has shrunk, whatever it says.
func TestReturnedTokensAreAtMostTheShrink(t *testing.T) {
	b := heldBooks(t, hold{version: 1, rate: 500, end: 20 * second}, hold{version: 3, rate: 400, end: 20 * second})
	if b.report(12*second, "a", Holding{Version: 3, Rate: 400, Returned: 90}); b.l.pool != 50 {
		t.Errorf("the pool got %d, the burst fell by 50", b.l.pool)
	}
}

// A list that is full joins its two oldest grants into one that covers both, and believes no tokens of them.
func TestFullList(t *testing.T) {
	p := &peer{acked: 1}
	for v := range uint64(maxHolds + 1) {
		p.list(hold{version: v + 1, rate: 100 - int64(v), cap: 10 * int64(v), end: 500 - int64(v), sent: int64(v)})
	}
	if got := p.holds[0]; len(p.holds) != maxHolds || got != (hold{version: 2, rate: 100, cap: 10, end: 500}) {
		t.Errorf("%d listed, the first is %+v", len(p.holds), got)
	}
	if p.covered(0, &Holding{Version: 5, Rate: 96}) {
		t.Error("covered by grants of which one is not listed")
	}
}

// A floor that is forgotten does not come back with a new grant, but counts until it has left the window.
func TestForgottenFloor(t *testing.T) {
	p := &peer{version: 7, floor: 50, floorEnd: 100, acked: 6}
	p.keepFloor(110, 60, 10, 500)
	if p.floor != 10 || p.capBase(110, 60, &plainQuota) != 50 || p.capBase(161, 60, &plainQuota) != 10 || p.rateBound(110) != 10 {
		t.Errorf("a floor of %d; %d in the window, later %d", p.floor, p.capBase(110, 60, &plainQuota), p.capBase(161, 60, &plainQuota))
	}
}

// Nor if the node's lease had ended by its own clock, which is before it ends in the ledger.
func TestReturnedTokensOfALapsedNodeAreLost(t *testing.T) {
	b, _ := grown(t)
	down := b.grant(11*second, "a")
	b.l.pool = 0
	b.report(12*second, "a", Holding{Version: down.Version, Rate: down.Rate / 2, Returned: 30})
	if down.Rate > 0 && b.l.pool != 0 {
		t.Errorf("the pool got %d from a node that has lapsed", b.l.pool)
	}
}

// An Envoy that asks for a million tokens of a small quota fills no memory, and another one still gets its own.
func TestAsksOfOneNodeFillTheMemory(t *testing.T) {
	l := NewLender(second, "k", plainQuota, DefaultParams(), true)
	for i := range 100 {
		m := Asks{Node: "bad", Incarnation: 1, Key: "k"}
		for k := range 1000 {
			m.Asks = append(m.Asks, Ask{uint64(1 + i*1000 + k), 1, maxTime})
		}
		l.Hear(2*second, &m)
	}
	if len(l.loans) > maxOpen || len(l.queue) > maxOpen {
		t.Errorf("%d loans, %d wait", len(l.loans), len(l.queue))
	}
	lent := func(now int64, node string) (n int) {
		for _, o := range l.Serve(now) {
			if o.Node == node {
				n += len(o.IDs)
			}
		}
		return n
	}
	if n := lent(2*second, "bad"); n != int(plainQuota.Burst) {
		t.Errorf("%d lent of %d", n, plainQuota.Burst)
	}
	l.Serve(60 * second) // all of that counts as used
	now := 80 * second   // and is forgotten
	l.Hear(now, &Asks{Node: "good", Incarnation: 1, Key: "k", Asks: []Ask{{1, 1, second}}})
	if n := lent(now, "good"); n != 1 || l.open["good"] != 1 || l.open["bad"] != 0 {
		t.Errorf("%d lent, open %v", n, l.open)
	}
	l.Hear(now, &Asks{Node: "good", Incarnation: 1, Key: "k", Done: []Done{{1, false}, {1, false}}})
	if len(l.open) != 0 {
		t.Errorf("open %v", l.open)
	}
}
