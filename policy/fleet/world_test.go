// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// A world is a fleet in virtual time: nodes with clocks of their own, a controller, and a network that loses, delays,
// reorders and doubles messages. Demand is fluid, in small units. It watches all that the package promises.
type world struct {
	now    int64
	events eventHeap
	seq    int
	rng    *rand.Rand

	cfg     worldConfig
	quota   Quota
	params  Params
	ledger  *Ledger
	up      bool // the controller
	epoch   uint64
	nodes   []*worldNode
	planted fault
	died    []died
	awaited map[life]bool // who has not told the controller all; nil: it does not know
	learned int           // how often all have, before the time
	outside bool          // judge by what is spent alone, not by the ledger

	bucket   float64    // an exact bucket that is charged with each admission
	admitted []admitted // in the last window
	inWindow int64
	highest  int64 // the highest limit of the last lease and window
	lowered  int64 // when the limit was last lowered
	maxSum   float64
	maxHeld  float64
	maxWin   float64
	used     int64
	broken   string
	grants   int
	worst    float64
}

type life struct {
	name        string
	incarnation uint64
}

type died struct {
	life
	at int64
}

type admitted struct{ at, units int64 }

// A worldConfig is the conditions of one run.
type worldConfig struct {
	seed         uint64
	nodes        int
	loss, double float64
	latency      float64 // mean, seconds
	skew         float64
	seconds      float64
	jumpy        bool // demand jumps, links are cut
	restarts     bool
	crash        float64 // controller, at; 0: never
	outage       float64
	cuts         bool // the limit is cut and restored
	idle         bool // some have no demand at all
	seats        bool // a new controller knows who may have a floor
	census       bool // and who there was
}

type worldNode struct {
	name        string
	up, cut     bool
	skew        float64
	offset      int64
	incarnation uint64
	node        *Node
	share       *Share
	meter       Meter
	demand      float64 // units per second
	rest        float64
	dead        []admitted // what earlier lives admitted in the last window
	mine        []admitted
}

// A fault is a mistake that is planted to see whether the world notices it.
type fault struct {
	ledger func(w *world)                         // after each rebalance
	report func(w *world, r *Report) *Report      // as it arrives
	meter  func(w *world, m Meter) Meter          // instead of the right one
	start  func(w *world)                         // after a controller started
	taken  func(w *world, n *worldNode, s Shares) // after a node got a message
}

type event struct {
	at  int64
	seq int
	run func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

const worldTick = int64(10 * time.Millisecond)

func (w *world) at(t float64, f func()) {
	w.seq++
	heap.Push(&w.events, event{w.now + int64(t*1e9), w.seq, f})
}

func newWorld(c worldConfig, q Quota, p Params, planted fault) *world {
	w := &world{rng: rand.New(rand.NewPCG(c.seed, 1)), cfg: c, quota: q, params: p, planted: planted, up: true, epoch: 1, highest: q.Limit}
	w.now = int64(1e9)
	w.ledger = NewLedger(w.now, "k", q, p, 1, true)
	for i := range c.nodes {
		n := &worldNode{name: fmt.Sprintf("n%03d", i), skew: c.skew * (2*w.rng.Float64() - 1), offset: w.rng.Int64N(1e12)}
		w.nodes = append(w.nodes, n)
		w.startNode(n)
	}
	w.schedule()
	return w
}

func (n *worldNode) local(t int64) int64 { return n.offset + t + int64(float64(t)*n.skew) }

func (w *world) startNode(n *worldNode) {
	n.up, n.incarnation = true, n.incarnation+1
	n.node = NewNode(n.name, n.incarnation, w.params)
	n.meter = NewLocal(n.local(w.now), w.quota.Window, w.quota.Memory)
	if w.planted.meter != nil {
		n.meter = w.planted.meter(w, n.meter)
	}
	n.share = n.node.Share("k", w.quota.Window, n.meter)
	n.dead, n.mine = append(n.dead, n.mine...), nil
}

func (w *world) schedule() {
	if w.cfg.jumpy {
		w.every(2, func() {
			n := w.nodes[w.rng.IntN(len(w.nodes))]
			n.demand = 0.001 * w.perSecond()
			if w.cfg.idle {
				n.demand = 0
			}
			if w.rng.IntN(2) == 0 {
				n.demand = 2 * w.perSecond() * w.rng.Float64()
			}
		})
		w.at(5, func() { w.every(3, func() { n := w.nodes[w.rng.IntN(len(w.nodes))]; n.cut = !n.cut }) })
	}
	if w.cfg.restarts {
		w.at(4, func() {
			w.every(12, func() {
				n := w.nodes[w.rng.IntN(len(w.nodes))]
				if n.up {
					n.up = false
					w.died = append(w.died, died{life{n.name, n.incarnation}, w.now})
					w.at(3*w.rng.Float64(), func() { w.startNode(n) })
				}
			})
		})
	}
	if w.cfg.crash > 0 {
		w.at(w.cfg.crash, func() { w.up = false })
		w.at(w.cfg.crash+w.cfg.outage, w.failOver)
	}
	if w.cfg.cuts {
		w.at(20, func() {
			w.every(15, func() {
				limit := int64(float64(w.quota.Limit) * (0.3 + 0.7*w.rng.Float64()))
				if limit < w.ledger.quota.Limit {
					w.lowered = w.now
				}
				w.ledger.SetLimit(w.now, limit)
			})
		})
	}
}

func (w *world) perSecond() float64 { return float64(w.quota.Limit) / float64(w.quota.Window) * 1e9 }

// every runs f at random, twice the mean at most.
func (w *world) every(mean float64, f func()) {
	f()
	w.at(2*mean*w.rng.Float64(), func() { w.every(mean, f) })
}

func (w *world) failOver() {
	w.up, w.epoch = true, w.epoch+1
	limit, seats := w.ledger.quota.Limit, w.ledger.Seats()
	w.ledger = NewLedger(w.now, "k", w.quota, w.params, w.epoch, false)
	if w.cfg.seats {
		w.ledger.Resume(seats)
	}
	w.ledger.SetLimit(w.now, limit)
	if w.cfg.census {
		w.takeCensus()
	}
	if w.planted.start != nil {
		w.planted.start(w)
	}
}

// takeCensus has the controller know which lives may have left anything, and greet them.
func (w *world) takeCensus() {
	w.awaited = map[life]bool{}
	for _, d := range w.died {
		if w.now-d.at < w.params.outlast(int64(w.params.Lease))+w.ledger.memory() {
			w.awaited[d.life] = true
		}
	}
	for _, n := range w.nodes {
		if n.up {
			w.awaited[life{n.name, n.incarnation}] = true
			w.greet(n)
		}
	}
}

func (w *world) greet(n *worldNode) {
	h := Hello{w.epoch}
	w.send(n, func() {
		if n.up && n.node.Hello(h) {
			w.report(n, false)
		}
	})
}

// toldAll ends the learning with the last who tells.
func (w *world) toldAll(r *Report) {
	if r.All && r.Epoch == w.epoch && len(w.awaited) > 0 {
		if delete(w.awaited, life{r.Node, r.Incarnation}); len(w.awaited) == 0 && w.now < max(w.ledger.learnCaps, w.ledger.learnRates) {
			w.ledger.EndLearning(w.now)
			w.learned++
		}
	}
}

// send carries a message, perhaps twice.
func (w *world) send(n *worldNode, deliver func()) {
	for i := range 2 {
		if i == 1 && w.rng.Float64() >= w.cfg.double {
			return
		}
		if n.cut || w.rng.Float64() < w.cfg.loss {
			continue
		}
		w.at(0.02+w.rng.ExpFloat64()*w.cfg.latency, func() {
			if !n.cut {
				deliver()
			}
		})
	}
}

func (w *world) report(n *worldNode, ackOnly bool) {
	r := n.node.Report(n.local(w.now), ackOnly)
	w.send(n, func() { w.receive(n, r) })
}

func (w *world) receive(n *worldNode, r Report) {
	if !w.up {
		return
	}
	if w.planted.report != nil {
		r = *w.planted.report(w, &r)
	}
	for i := range r.Holdings {
		if !w.ledger.Report(w.now, &r, &r.Holdings[i]) {
			w.greet(n)
			return
		}
	}
	w.toldAll(&r)
}

func (w *world) rebalance() {
	if !w.up || w.now < w.ledger.Next() {
		return
	}
	for _, p := range w.ledger.Rebalance(w.now, nil) {
		w.grants++
		m := Shares{w.epoch, p.Incarnation, []Grant{p.Grant}}
		for _, n := range w.nodes {
			if n.name == p.Node {
				w.send(n, func() {
					if n.up && n.node.Take(n.local(w.now), m) {
						w.report(n, true)
					}
					if n.up && w.planted.taken != nil {
						w.planted.taken(w, n, m)
					}
				})
			}
		}
	}
	if w.planted.ledger != nil {
		w.planted.ledger(w)
	}
}

// spend lets the demand of a tick through, as far as the share allows.
func (w *world) spend(n *worldNode) {
	local := n.local(w.now)
	n.share.Settle(local)
	n.rest += n.demand * float64(worldTick) / 1e9
	offered := int64(n.rest)
	n.rest -= float64(offered)
	room := n.meter.(interface{ Room(int64) int64 }).Room(local)
	take := min(offered, room)
	n.share.Offer(local, offered, 1+offered/100, take < offered)
	if take > 0 {
		n.meter.(interface{ Take(int64, int64) }).Take(local, take)
		w.used += take
		n.mine = append(n.mine, admitted{w.now, take})
		w.admitted = append(w.admitted, admitted{w.now, take})
		w.inWindow += take
		w.bucket -= float64(take)
	}
	if n.node.Due(local) {
		w.report(n, false)
	}
}

// run runs until the end, or until something is broken.
func (w *world) run() *world {
	w.bucket = float64(w.quota.Burst)
	end := w.now + int64(w.cfg.seconds*1e9)
	for tick := w.now; tick < end && w.broken == ""; tick += worldTick {
		for len(w.events) > 0 && w.events[0].at <= tick {
			e := heap.Pop(&w.events).(event)
			w.now = e.at
			e.run()
		}
		w.now = tick
		w.refillOracle()
		for _, n := range w.nodes {
			if n.up {
				w.spend(n)
			}
		}
		w.rebalance()
		w.check()
	}
	return w
}

// refillOracle refills the exact bucket, at the rate that the nodes' clocks allow.
func (w *world) refillOracle() {
	rate := w.perSecond() * (1 + 1.1*w.cfg.skew)
	w.bucket = math.Min(float64(w.quota.Burst), w.bucket+rate*float64(worldTick)/1e9)
	for len(w.admitted) > 0 && w.admitted[0].at <= w.now-w.quota.Window {
		w.inWindow -= w.admitted[0].units
		w.admitted = w.admitted[1:]
	}
}

func lately(l []admitted, since int64) (rest []admitted, units int64) {
	for len(l) > 0 && l[0].at <= since {
		l = l[1:]
	}
	for _, a := range l {
		units += a.units
	}
	return l, units
}
