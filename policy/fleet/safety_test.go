// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy"
)

func (w *world) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf("at %.2f s: ", float64(w.now)/1e9) + fmt.Sprintf(format, args...)
	}
}

// check asks whether the promises hold now: P10, P11, P12.
func (w *world) check() {
	sum, held := int64(0), int64(0)
	for _, n := range w.nodes {
		var dead int64
		n.dead, dead = lately(n.dead, w.now-w.quota.Window)
		held += dead
		if !n.up {
			var mine int64
			n.mine, mine = lately(n.mine, w.now-w.quota.Window)
			held += mine
			continue
		}
		t := n.share.Terms(n.local(w.now))
		if t.Rate < 0 || t.Cap < 0 || t.Burst < 0 || t.Rate > w.quota.Limit || t.Cap > w.quota.Limit {
			w.fail("%s has terms %+v", n.name, t)
		}
		sum += t.Rate
		held += n.share.Held(n.local(w.now))
		w.covered(n, t)
	}
	w.maxSum = max(w.maxSum, float64(sum)/float64(w.quota.Limit))
	w.maxHeld = max(w.maxHeld, float64(held)/float64(w.quota.Limit))
	w.maxWin = max(w.maxWin, float64(w.inWindow)/float64(w.quota.Limit))
	w.worst = min(w.worst, w.bucket)
	if sum > w.quota.Limit {
		w.fail("rates are %d in sum, the limit is %d", sum, w.quota.Limit)
	}
	if w.bucket < -1 {
		w.fail("an exact bucket owes %.0f of %d", -w.bucket, w.quota.Burst)
	}
	if w.quota.windowed() && (held > w.quota.Limit || w.inWindow > w.quota.Limit) {
		w.fail("%d admitted in a window, %d held, the limit is %d", w.inWindow, held, w.quota.Limit)
	}
	w.lease()
}

// covered asks whether the ledger covers what a node holds, when it is the only one to know.
func (w *world) covered(n *worldNode, t policy.Terms) {
	l := w.ledger
	if w.outside || !w.up || w.now < l.learnCaps || w.now < l.learnRates {
		return
	}
	p := l.named[n.name]
	if p == nil || p.incarnation != n.incarnation {
		if t.Rate > l.quota.floor() {
			w.fail("%s has %d, and the ledger does not know it", n.name, t.Rate)
		}
		return
	}
	rate, units := p.rateBound(w.now), p.capBase(w.now, l.memory(), &l.quota)
	if t.Rate > rate || w.quota.windowed() && n.share.Held(n.local(w.now)) > units {
		w.fail("%s has %d and %d, the ledger %d and %d", n.name, t.Rate, n.share.Held(n.local(w.now)), rate, units)
	}
	if m, ok := n.meter.(*Local); ok && m.Level(n.local(w.now)) > w.quota.burstOf(rate) {
		w.fail("%s has a level of %d, the ledger %d", n.name, m.Level(n.local(w.now)), w.quota.burstOf(rate))
	}
}

// lease asks whether the ledger's sums hold: what nodes may spend, and the pool beside their bursts.
func (w *world) lease() {
	l := w.ledger
	if w.outside || !w.up || w.now < l.learnCaps || w.now < l.learnRates {
		return
	}
	sum, caps, bursts := int64(0), int64(0), l.pool
	for _, p := range l.peers {
		u := p.rateBound(w.now)
		sum += u
		bursts += w.quota.burstOf(u)
		caps += p.capBase(w.now, l.memory(), &l.quota) + p.spooky(w.now, l.memory())
	}
	highest := w.quota.Limit
	if settled := w.params.outlast(int64(w.params.Lease)) + w.ledger.memory(); w.now-w.lowered > settled+int64(30*time.Second) {
		highest = l.quota.Limit
	}
	allowed := int64(0)
	if w.cfg.seats && w.epoch > 1 { // a place counts with its whole floor, also if its node never had that: too much, never too little
		allowed = w.quota.Floors
	}
	if sum > highest+allowed || bursts > w.quota.Burst+w.quota.burstOf(allowed) || w.quota.windowed() && caps > w.quota.Limit+allowed {
		w.fail("the ledger has rates %d, bursts %d, caps %d", sum, bursts, caps)
	}
}

// drawWorld makes conditions at random.
func drawWorld(k int, windowed bool) (worldConfig, Quota, Params) {
	r := rand.New(rand.NewPCG(uint64(k), 7))
	c := worldConfig{
		seed: uint64(k), nodes: 1 + r.IntN(8), loss: 0.3 * r.Float64(), double: 0.2, latency: 0.02 + 0.5*r.Float64(), skew: 4e-4,
		seconds: 120, jumpy: true, restarts: true, crash: 20 + 40*r.Float64(), outage: 0.01 + 20*r.Float64(), cuts: r.IntN(3) == 0,
	}
	limit := int64(1e6)
	q := Quota{Limit: limit, Window: int64(10 * time.Second), Nodes: int64(c.nodes), Floors: int64(0.5 * r.Float64() * float64(limit))}
	d := math.Pow(10, -1.5+2*r.Float64()) // seconds of burst
	q.Burst = min(int64(d*float64(limit)/10), limit)
	if windowed {
		q.Memory = MemoryOf(q.Window, int64(100*time.Millisecond))
		c.seconds = 150
	}
	p := DefaultParams()
	p.Lease = time.Duration((1 + 10*r.Float64()) * 1e9)
	p.Forget = time.Duration((1 + 60*r.Float64()) * 1e9)
	if r.IntN(2) == 0 && !slices.Contains(onceBroken, k) { // more or fewer nodes than have floors
		q.Nodes = 1 + r.Int64N(q.Nodes+3)
	}
	c.idle, c.seats, c.census = k%2 == 1, k%3 == 1, k%5 < 2
	if c.census && !slices.Contains(onceBroken, k) { // one who has died cannot tell
		c.restarts = k%4 == 0
	}
	return c, q, p
}

// onceBroken are runs that showed a mistake which few others show: 689, that a node which is gone spent its floor after its
// lease; the others, that one which the new controller never heard of did.
var onceBroken = []int{689, 2165, 2167, 2855}

// Whatever the network, the nodes and the controller do, nobody ever spends more than the quota.
func TestNeverMoreThanTheQuota(t *testing.T) {
	for _, windowed := range []bool{false, true} {
		runs := 60
		if n, err := strconv.Atoi(os.Getenv("RUNS")); err == nil { // RUNS=1000: for long
			runs = n
		}
		worst, held, window, grants, learned := 0.0, 0.0, 0.0, 0, 0
		for _, k := range append(onceBroken, indices(runs)...) {
			c, q, p := drawWorld(k, windowed)
			w := newWorld(c, q, p, fault{}).run()
			if w.broken != "" {
				t.Errorf("windowed %v, run %d %+v: %s", windowed, k, c, w.broken)
			}
			worst, held, window, grants = max(worst, w.maxSum), max(held, w.maxHeld), max(window, w.maxWin), grants+w.grants
			learned += w.learned
		}
		t.Logf("windowed %v: at most %.6f of the quota in rates, %.6f held, %.6f in a window; %d grants; %d times learned soon", windowed, worst, held, window, grants, learned)
		if learned == 0 {
			t.Error("no new controller was told all before its time")
		}
	}
}
