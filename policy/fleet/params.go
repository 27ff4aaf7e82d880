// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"github.com/weirproxy/weir/policy"
)

// maxUnits bounds all amounts, so that sums of them over a fleet fit into 63 bits.
const maxUnits = policy.MaxUnits * 1000

// A Quota is what a fleet shares.
type Quota struct {
	Limit  int64 // units per window
	Window int64 // ns
	Burst  int64 // units that may be taken at once, at most Limit

	// Memory is how long after a call a node's ring may still count it, in ns, at least Window; 0 for a continuous limit,
	// for which nodes have a bucket and no ring.
	Memory int64

	Floors int64 // units per window that nodes keep without a lease, in sum
	Nodes  int64 // how many nodes have a floor: max_envoys
}

// windowed says whether nodes have rings.
func (q Quota) windowed() bool { return q.Memory > 0 }

// burstOf is the burst that belongs to a rate. It is rounded down, so that the bursts of all rates are never more than the
// quota's.
func (q Quota) burstOf(rate int64) int64 { return part(rate, q.Burst, q.Limit) }

// floor is what each node keeps.
func (q Quota) floor() int64 { return q.Floors / max(q.Nodes, 1) }

// Params are the times of the protocol. The defaults come from the ablations of the simulation `fleet`: each was varied with
// the others held.
type Params struct {
	Report    time.Duration // between two reports of a node
	Lease     time.Duration // from the sending of a report for as long as the grant in answer to it lasts
	Margin    time.Duration // reading of clocks, slack of timers
	Silent    time.Duration // no report for so long: the node keeps what it may hold, and gets nothing
	Rebalance time.Duration // least time between two rebalances of a quota
	Beat      time.Duration // most time between them, while anything moves
	Forget    time.Duration // from the end of a lease for as long as its node keeps its floor
	Ahead     time.Duration // for so long a node may go on at its rate before its cap must grow again
	Patience  time.Duration // for so long at most a call waits for tokens of a small quota
}

// DefaultParams are the defaults.
func DefaultParams() Params {
	return Params{
		Report: time.Second, Lease: 10 * time.Second, Margin: 20 * time.Millisecond, Silent: 1600 * time.Millisecond,
		Rebalance: 30 * time.Millisecond, Beat: 250 * time.Millisecond, Forget: time.Hour, Ahead: 3 * time.Second,
		Patience: 10 * time.Second,
	}
}

// clockError bounds by how much two clocks differ in rate: one part in so many. Quartz is at 1e-4 at worst, and the kernel
// slews by at most 5e-4.
const clockError = 1000

// outlast is how long the controller waits so that d has passed on any node's clock, in ns.
func (p Params) outlast(d int64) int64 { return d + d/clockError + int64(p.Margin) }

// loanTerm is for how long after the first ask a loan may be used, in ns: longer than a call waits, so that a token which
// comes as its call leaves can serve the next.
func (p Params) loanTerm() int64 { return int64(p.Patience + 5*time.Second) }
