// SPDX-License-Identifier: Apache-2.0

package fleet

// A Report is what a node says of itself, about once a second and when its demand changes. It is also its
// acknowledgement: there is no other.
type Report struct {
	Node        string
	Incarnation uint64 // greater in each life of the node
	Number      uint64 // greater in each report of this life
	Epoch       uint64 // of the controller whose grants it holds; 0: of none yet
	AckOnly     bool
	All         bool // beside its holdings, the node holds and remembers nothing of an earlier epoch but floors
	Holdings    []Holding
}

// A Holding is what a node says of one quota, as of the sending of its report.
type Holding struct {
	Key        string
	Version    uint64 // applied; all older ones are dead
	Demand     int64  // offered load, units per window
	Rate       int64  // in force, units per window
	Cap        int64  // in force, units in any window; it never rises under one version
	Remembered int64  // units that the ring still counts
	Spent      int64  // units that the ring has counted, in sum over this life
	Floor      int64  // what it keeps when the lease ends, units per window
	Returned   int64  // units of level given back on shrinks, in sum over this life
}

// Shares are grants on their way to a node.
type Shares struct {
	Epoch       uint64
	Incarnation uint64 // of the node, as it reported it; to another it means nothing
	Grants      []Grant
}

// A Grant is a share of one quota.
type Grant struct {
	Key     string
	Version uint64 // greater in each grant of this quota to this node
	Number  uint64 // of the node's report from whose sending the lease runs
	Lease   int64  // ns
	Forget  int64  // ns from the end of the lease for which the floor is kept
	Rate    int64  // units per window
	Burst   int64  // units
	Cap     int64  // units in any window; 0 for a continuous limit
	Floor   int64  // units per window; at most Rate
	Tokens  int64  // units of level that come with this very grant
	Ack     bool   // report at once: somebody waits for what this takes away
	Tight   bool   // windows are short: keep no more of the cap than Ahead needs
}

// A Hello answers a report of another epoch: it grants nothing, and all older grants are dead once it is heard.
type Hello struct {
	Epoch uint64
}
