// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/weirproxy/weir/policy/fleet"
)

// send carries one message between a node and the controller, either way: 20 ms and on average 150 ms more, or 20 ms more
// where it is quiet.
func (w *fleetWorld) send(n *fleetNode, deliver func()) {
	w.sent++
	mean, loss := 0.02, 0.0
	if w.hard {
		mean, loss = 0.15, hardLoss
	}
	delay := time.Duration((0.02 + w.network.ExpFloat64()*mean) * 1e9)
	if w.network.Float64() < loss || n.cut {
		return
	}
	w.clock.After(delay, func() {
		if !n.cut {
			deliver()
		}
	})
}

func (w *fleetWorld) report(n *fleetNode, ackOnly bool) {
	r := n.node.Report(w.local(n), ackOnly)
	w.send(n, func() { w.receive(n, &r) })
}

func (w *fleetWorld) receive(n *fleetNode, r *fleet.Report) {
	if !w.up {
		return
	}
	for i := range r.Holdings {
		if !w.ledger.Report(w.clock.Now(), r, &r.Holdings[i]) {
			w.hello(n)
			return
		}
	}
}

func (w *fleetWorld) hello(n *fleetNode) {
	h := fleet.Hello{Epoch: w.epoch}
	w.send(n, func() {
		if n.up && n.node.Hello(h) {
			w.report(n, false)
		}
	})
}

// rebalance lets the controller work when it is time to.
func (w *fleetWorld) rebalance() {
	if !w.up || w.clock.Now() < w.ledger.Next() {
		return
	}
	for _, p := range w.ledger.Rebalance(w.clock.Now(), nil) {
		n := w.byName[p.Node]
		m := fleet.Shares{Epoch: w.epoch, Incarnation: p.Incarnation, Grants: []fleet.Grant{p.Grant}}
		w.send(n, func() {
			if n.up && n.node.Take(w.local(n), m) {
				w.report(n, true)
			}
		})
	}
}
