// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// A fleetWorld is some Envoys that share a quota with the protocol of package fleet, a network, faults, and beside them an
// ideal bucket that sees the same demand without a network. Demand is fluid: what is not admitted at once is lost.
type fleetWorld struct {
	fleetConfig
	clock  Clock
	quota  fleet.Quota
	params fleet.Params
	ledger *fleet.Ledger
	up     bool // the controller
	epoch  uint64
	nodes  []*fleetNode
	byName map[string]*fleetNode

	demand, faults, network *rand.Rand

	ideal  *fleet.Local
	judge  fleetJudge
	sent   int64 // messages
	filler fleet.Filler
	wants  []fleet.Want
	fair   []int64
}

type fleetConfig struct {
	seed     uint64
	nodes    int
	hard     bool
	windowed bool
	seconds  int64
	warm     int64 // seconds before goodput counts
}

// A fleetNode is an Envoy of the simulation.
type fleetNode struct {
	name        string
	up, cut     bool
	skew        float64
	incarnation uint64
	node        *fleet.Node
	share       *fleet.Share
	meter       *fleet.Local
	demand      float64 // units per second
	rest        float64
	admitted    int64 // in this span of fairness
	fair        int64
	dead        []spent // by earlier lives, in the last window
	mine        []spent
}

type spent struct{ at, units int64 }

// The conditions: a quota of a million tokens a second, of which calls take a thousand each.
const (
	fleetRate   = 1_000_000 // tokens per second
	fleetWindow = int64(time.Minute)
	fleetCall   = 1000
	fleetTick   = 10 * time.Millisecond
	fleetJitter = int64(100 * time.Millisecond)
	fairSpan    = 20 * time.Second
	demandSpan  = 20 * time.Second
)

func newFleetWorld(c fleetConfig) *fleetWorld {
	w := &fleetWorld{
		fleetConfig: c, up: true, epoch: 1, params: fleet.DefaultParams(), byName: map[string]*fleetNode{},
		demand: Rand(c.seed, "demand"), faults: Rand(c.seed, "faults"), network: Rand(c.seed, "network"),
	}
	w.quota = fleet.Quota{
		Limit: fleetRate * 60, Window: fleetWindow, Burst: fleetRate, Floors: fleetRate * 60 / 10, Nodes: int64(c.nodes),
	}
	if c.windowed {
		w.quota.Memory = fleet.MemoryOf(fleetWindow, fleetJitter)
	}
	w.clock.Run(int64(time.Second))
	w.ledger = fleet.NewLedger(w.clock.Now(), "quota", w.quota, w.params, w.epoch, true)
	w.ideal = fleet.NewLocal(w.clock.Now(), fleetWindow, w.quota.Memory)
	w.ideal.Put(w.clock.Now(), policy.Lease{Terms: policy.Terms{Rate: w.quota.Limit, Burst: w.quota.Burst, Cap: w.quota.Limit}}, w.quota.Burst)
	w.judge = newFleetJudge(w)
	for i := range c.nodes {
		n := &fleetNode{name: fmt.Sprintf("envoy-%03d", i), skew: 2e-4 * (2*w.faults.Float64() - 1)}
		w.nodes, w.byName[n.name] = append(w.nodes, n), n
		w.wants, w.fair = append(w.wants, fleet.Want{Weight: 1}), append(w.fair, 0)
		w.start(n)
	}
	return w
}

// local is the node's clock, which is a little fast or slow.
func (w *fleetWorld) local(n *fleetNode) int64 {
	t := w.clock.Now()
	return t + int64(float64(t)*n.skew)
}

// start begins a new life of a node: with nothing, as after a restart of Envoy.
func (w *fleetWorld) start(n *fleetNode) {
	n.up, n.incarnation = true, n.incarnation+1
	n.node = fleet.NewNode(n.name, n.incarnation, w.params)
	n.meter = fleet.NewLocal(w.local(n), fleetWindow, w.quota.Memory)
	n.share = n.node.Share("quota", fleetWindow, n.meter)
	n.dead, n.mine = append(n.dead, n.mine...), nil
}

// run runs the whole time.
func (w *fleetWorld) run() fleetResult {
	w.clock.Every(demandSpan, func() bool { w.redraw(); return true })
	if w.hard {
		w.scheduleFaults()
	}
	w.clock.Every(fleetTick, func() bool { w.tick(); return true })
	w.clock.Run((1 + w.seconds) * int64(time.Second))
	return w.judge.result()
}

// redraw gives the nodes another demand: log-normal with a sigma of 1.5, in sum 0.7 to 1.5 times the quota.
func (w *fleetWorld) redraw() {
	total, sum := fleetRate*(0.7+0.8*w.demand.Float64()), 0.0
	for _, n := range w.nodes {
		n.demand = math.Exp(1.5 * w.demand.NormFloat64())
		sum += n.demand
	}
	for _, n := range w.nodes {
		n.demand *= total / sum
	}
}

// tick is one step of the fluid demand.
func (w *fleetWorld) tick() {
	offered, used := int64(0), int64(0)
	for _, n := range w.nodes {
		if n.up {
			o, u := w.spend(n)
			offered, used = offered+o, used+u
		}
	}
	now := w.clock.Now()
	ideal := min(offered, w.ideal.Room(now))
	w.ideal.Take(now, ideal)
	w.rebalance()
	w.judge.tick(offered, used, ideal)
}

// spend lets through what the node's share allows of a tick's demand.
func (w *fleetWorld) spend(n *fleetNode) (offered, used int64) {
	now := w.local(n)
	n.share.Settle(now)
	n.rest += n.demand * fleetTick.Seconds()
	offered = int64(n.rest)
	n.rest -= float64(offered)
	used = min(offered, n.meter.Room(now))
	n.share.Offer(now, offered, (offered+fleetCall-1)/fleetCall, used < offered)
	if used > 0 {
		n.meter.Take(now, used)
		n.admitted += used
		n.mine = append(n.mine, spent{w.clock.Now(), used})
	}
	if n.node.Due(now) {
		w.report(n, false)
	}
	return offered, used
}
