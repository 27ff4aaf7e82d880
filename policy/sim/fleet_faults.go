// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/weirproxy/weir/policy/fleet"
)

// Hard conditions: a node is cut off every partitionGap for 5 to 35 s, one is restarted every restartGap, and the controller
// is away for outage.
const (
	partitionGap = 15 * time.Second
	restartGap   = 37 * time.Second
	restartTime  = 3 * time.Second
	outageAt     = 200 * time.Second
	outage       = 6 * time.Second
	hardLoss     = 0.02
)

func (w *fleetWorld) scheduleFaults() {
	any := func() *fleetNode { return w.nodes[w.faults.IntN(len(w.nodes))] }
	w.clock.After(40*time.Second, func() {
		w.clock.Every(partitionGap, func() bool {
			n := any()
			n.cut = true
			w.clock.After(time.Duration((5+30*w.faults.Float64())*1e9), func() { n.cut = false })
			return true
		})
	})
	w.clock.After(50*time.Second, func() {
		w.clock.Every(restartGap, func() bool {
			if n := any(); n.up {
				n.up = false
				w.clock.After(restartTime, func() { w.start(n) })
			}
			return true
		})
	})
	w.clock.After(outageAt, func() { w.up = false })
	w.clock.After(outageAt+outage, w.failOver)
}

func (w *fleetWorld) failOver() {
	w.up, w.epoch = true, w.epoch+1
	seats := w.ledger.Seats() // the controller's store has them
	w.ledger = fleet.NewLedger(w.clock.Now(), "quota", w.quota, w.params, w.epoch, false)
	w.ledger.Resume(seats)
}
