// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// A smallWorld is some Envoys that borrow the tokens of whole calls.
type smallWorld struct {
	smallConfig
	clock   Clock
	quota   fleet.Quota
	lender  *fleet.Lender
	nodes   []*smallNode
	byName  map[string]*smallNode
	weights float64

	arrivals, network *rand.Rand
	calls             []smallCall
	waits             []float64
	used              []int64 // when
	sent              int64
}

type smallConfig struct {
	windowed, skewed, static bool
	offered                  float64 // a minute
	loss                     float64
	hours                    int
}

type smallNode struct {
	name     string
	weight   float64
	borrower *fleet.Borrower
	since    map[uint64]int64 // when a waiting call came
	bucket   *fleet.Local
}

type smallCall struct {
	at   int64
	node *smallNode
}

const (
	smallLimit    = 10
	smallNodes    = 50
	smallPatience = 10 * time.Second
)

func newSmallWorld(seed uint64, c smallConfig) *smallWorld {
	w := &smallWorld{smallConfig: c, byName: map[string]*smallNode{}, arrivals: Rand(seed, "arrivals"), network: Rand(seed, "network")}
	w.quota = fleet.Quota{Limit: smallLimit, Window: int64(time.Minute), Burst: smallLimit}
	if c.windowed {
		w.quota.Memory = fleet.MemoryOf(w.quota.Window, 0)
	}
	w.clock.Run(int64(time.Second))
	p := fleet.DefaultParams()
	w.lender = fleet.NewLender(w.clock.Now(), "quota", w.quota, p, true)
	for i := range smallNodes {
		n := &smallNode{name: fmt.Sprintf("envoy-%02d", i), weight: 1, since: map[uint64]int64{}}
		n.borrower = fleet.NewBorrower(n.name, 1, "quota", p)
		// What a static limiter gives each: a 50th of the rate, and a burst of one call, for less admits none.
		n.bucket = fleet.NewLocal(w.clock.Now(), w.quota.Window*smallNodes, 0)
		n.bucket.Put(w.clock.Now(), policy.Lease{Terms: policy.Terms{Rate: smallLimit, Burst: 1}}, 1)
		if c.skewed {
			n.weight = 1 / float64(i+1)
		}
		w.weights += n.weight
		w.nodes, w.byName[n.name] = append(w.nodes, n), n
	}
	w.draw()
	return w
}

// draw makes all calls beforehand, so that the ideal bucket sees the same.
func (w *smallWorld) draw() {
	begin, end := w.clock.Now()+int64(2*time.Minute), int64(w.hours)*int64(time.Hour)
	for t := begin; ; {
		t += int64(w.arrivals.ExpFloat64() * 60e9 / w.offered)
		if t > end {
			return
		}
		u, n := w.arrivals.Float64()*w.weights, w.nodes[0]
		for _, n = range w.nodes {
			if u -= n.weight; u < 0 {
				break
			}
		}
		w.calls = append(w.calls, smallCall{t, n})
	}
}

func (w *smallWorld) run() SmallQuotaRow {
	for _, c := range w.calls {
		w.clock.At(c.at, func() { w.arrive(c.node) })
	}
	if !w.static {
		w.clock.Every(100*time.Millisecond, func() bool {
			for _, n := range w.nodes {
				w.poll(n)
			}
			w.serve()
			return true
		})
	}
	w.clock.Run(int64(w.hours)*int64(time.Hour) + int64(time.Minute))
	return w.result()
}

func (w *smallWorld) arrive(n *smallNode) {
	now := w.clock.Now()
	if w.static {
		if n.bucket.Room(now) > 0 {
			n.bucket.Take(now, 1)
			w.admit(now)
		}
		return
	}
	call, ok := n.borrower.Want(now, 1, int64(smallPatience))
	if ok {
		w.admit(now)
	} else {
		n.since[call] = now
	}
	w.poll(n)
}

func (w *smallWorld) admit(since int64) {
	now := w.clock.Now()
	w.used = append(w.used, now)
	w.waits = append(w.waits, float64(now-since)/1e9)
}

func (w *smallWorld) send(deliver func()) {
	w.sent++
	delay := time.Duration((0.02 + w.network.ExpFloat64()*0.15) * 1e9)
	if w.network.Float64() >= w.loss {
		w.clock.After(delay, deliver)
	}
}

func (w *smallWorld) poll(n *smallNode) {
	if m := n.borrower.Message(w.clock.Now()); m != nil {
		w.send(func() { w.lender.Hear(w.clock.Now(), m); w.serve() })
	}
}

func (w *smallWorld) serve() {
	for _, loan := range w.lender.Serve(w.clock.Now()) {
		n := w.byName[loan.Node]
		w.send(func() {
			for _, call := range n.borrower.Take(w.clock.Now(), &loan.Lent) {
				w.admit(n.since[call])
				delete(n.since, call)
			}
			w.poll(n)
		})
	}
}
