// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/policy"
)

// A scaler scales the level with the share instead of taking the lesser: it mints.
type scaler struct{ *Local }

func (s scaler) Put(at int64, l policy.Lease, tokens int64) int64 {
	level, burst := s.Level(at), s.terms.Burst
	over := s.Local.Put(at, l, tokens)
	if burst > 0 {
		s.level = min(max(s.level, part(max(level, 0), l.Terms.Burst, burst)), l.Terms.Burst)
	}
	return over
}

func eachPeer(f func(w *world, p *peer)) func(w *world) {
	return func(w *world) {
		for _, p := range w.ledger.peers {
			f(w, p)
		}
	}
}

// plants are mistakes that one could make in this protocol. What is spent must show each of them.
var plants = map[string]struct {
	fault
	windowed bool
	tune     func(c *worldConfig, q *Quota) // conditions under which it is seen soon
}{
	"no wait for the acknowledgement": {fault: fault{ledger: eachPeer(func(w *world, p *peer) {
		p.holds = p.holds[max(len(p.holds)-1, 0):]
	})}},
	"a lease in the ledger 20 % short": {fault: fault{ledger: eachPeer(func(w *world, p *peer) {
		for i := range p.holds {
			if h := &p.holds[i]; h.end == p.seen+w.params.outlast(int64(w.params.Lease)) {
				h.end -= int64(w.params.Lease) / 5
			}
		}
	})}},
	"learning too short": {fault: fault{start: func(w *world) {
		w.ledger.learnRates, w.ledger.learnCaps = w.now+int64(time.Second), w.now+int64(time.Second)
	}}},
	"levels scaled with shares": {tune: func(c *worldConfig, q *Quota) {
		c.loss, c.latency, c.crash, c.restarts, q.Burst = 0, 0.02, 0, false, q.Limit/3
	}, fault: fault{meter: func(_ *world, m Meter) Meter { return scaler{m.(*Local)} }}},
	"no fence": {tune: func(c *worldConfig, q *Quota) { c.outage, c.latency, c.loss = 0.01, 0.7, 0.1 }, fault: fault{
		report: func(w *world, r *Report) *Report { c := *r; c.Epoch = w.epoch; return &c },
		taken: func(w *world, n *worldNode, s Shares) {
			if s.Epoch > n.node.epoch {
				n.node.epoch, n.share.lease.Version = s.Epoch, 0
				n.node.Take(n.local(w.now), s)
			}
		},
	}},
	"a level from a pool that is never empty": {fault: fault{ledger: func(w *world) { w.ledger.pool = w.quota.Burst }}},
	"a pool that is not cut to what is free":  {fault: fault{ledger: unclamped()}},
	"what a ring remembers is lent out": {windowed: true, fault: fault{ledger: eachPeer(func(w *world, p *peer) {
		p.trail.rememberedEnd = 0
	})}},
	"the cap of a lost node comes back at the end of its lease": {windowed: true, fault: fault{ledger: eachPeer(func(w *world, p *peer) {
		if w.now > p.seen+w.params.outlast(int64(w.params.Lease)) {
			p.holds, p.trail.rememberedEnd = nil, 0
		}
	})}},
	"what an earlier life spent is forgotten": {windowed: true, fault: fault{ledger: eachPeer(func(w *world, p *peer) {
		p.ghosts = nil
	})}},
	"a lost node spent nothing after its last report": {windowed: true, fault: fault{ledger: eachPeer(func(w *world, p *peer) {
		for i := range p.ghosts {
			p.ghosts[i].later = 0
		}
		for i := range p.holds {
			if h := &p.holds[i]; w.now >= h.end {
				h.cap = min(h.cap, p.trail.faded(w.now, w.ledger.memory()))
			}
		}
	})}},
	"what a lost node spent fades too soon": {windowed: true, fault: fault{ledger: eachPeer(func(w *world, p *peer) {
		for i := range p.ghosts {
			for k := range p.ghosts[i].trail.marks {
				p.ghosts[i].trail.marks[k].at -= int64(3 * time.Second)
			}
		}
	})}},
	"all has been learned when one has told": {tune: census, fault: fault{start: func(w *world) {
		for l := range w.awaited {
			if len(w.awaited) > 1 {
				delete(w.awaited, l)
			}
		}
	}}},
	"a life that has ended is not waited for": {windowed: true, tune: census, fault: fault{start: func(w *world) {
		for _, d := range w.died {
			delete(w.awaited, d.life)
		}
	}}},
	"windows are learned no longer than rates": {windowed: true, fault: fault{start: func(w *world) {
		w.ledger.learnCaps = w.ledger.learnRates
	}}},
}

func census(c *worldConfig, _ *Quota) { c.census, c.restarts = true, true }

// unclamped adds to the pool what flows in, whatever fits.
func unclamped() func(w *world) {
	pool, last := map[*Ledger]int64{}, map[*Ledger]int64{}
	return func(w *world) {
		l := w.ledger
		pool[l] = pool[l] + part(l.inflow, max(w.now-last[l], 0), w.quota.Window)
		last[l] = w.now
		l.pool = max(l.pool, pool[l])
	}
}

// The promises can be broken, and breaking them is seen: each mistake is caught by what is spent alone.
func TestMistakesAreSeen(t *testing.T) {
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			for k := range 400 {
				c, q, p := drawWorld(k, plant.windowed)
				c.cuts = false
				if plant.tune != nil {
					plant.tune(&c, &q)
				}
				w := newWorld(c, q, p, plant.fault)
				w.outside = true
				if w.run(); w.broken != "" {
					t.Logf("run %d, %s", k, w.broken)
					return
				}
			}
			t.Error("not seen")
		})
	}
}
