// SPDX-License-Identifier: Apache-2.0

package fleet

// A Report is what a node says of itself, about once a second and when its demand changes. It is also its
// acknowledgement: there is no other.
type Report struct {
	Node        string    `json:"node"`
	Incarnation uint64    `json:"incarnation"` // greater in each life of the node
	Number      uint64    `json:"number"`      // greater in each report of this life
	Epoch       uint64    `json:"epoch"`       // of the controller whose grants it holds; 0: of none yet
	AckOnly     bool      `json:"ack_only,omitempty"`
	Holdings    []Holding `json:"holdings,omitempty"`
}

// A Holding is what a node says of one quota, as of the sending of its report.
type Holding struct {
	Key        string `json:"key"`
	Version    uint64 `json:"version"`              // applied; all older ones are dead
	Demand     int64  `json:"demand,omitempty"`     // offered load, units per window
	Rate       int64  `json:"rate,omitempty"`       // in force, units per window
	Cap        int64  `json:"cap,omitempty"`        // in force, units in any window; it never rises under one version
	Remembered int64  `json:"remembered,omitempty"` // units that the ring still counts
	Spent      int64  `json:"spent,omitempty"`      // units that the ring has counted, in sum over this life
	Floor      int64  `json:"floor,omitempty"`      // what it keeps when the lease ends, units per window
	Returned   int64  `json:"returned,omitempty"`   // units of level given back on shrinks, in sum over this life
}

// Shares are grants on their way to a node.
type Shares struct {
	Epoch       uint64  `json:"epoch"`
	Incarnation uint64  `json:"incarnation"` // of the node, as it reported it; to another it means nothing
	Grants      []Grant `json:"grants,omitempty"`
}

// A Grant is a share of one quota.
type Grant struct {
	Key     string `json:"key"`
	Version uint64 `json:"version"`          // greater in each grant of this quota to this node
	Number  uint64 `json:"number"`           // of the node's report from whose sending the lease runs
	Lease   int64  `json:"lease"`            // ns
	Forget  int64  `json:"forget"`           // ns from the end of the lease for which the floor is kept
	Rate    int64  `json:"rate"`             // units per window
	Burst   int64  `json:"burst"`            // units
	Cap     int64  `json:"cap,omitempty"`    // units in any window; 0 for a continuous limit
	Floor   int64  `json:"floor,omitempty"`  // units per window; at most Rate
	Tokens  int64  `json:"tokens,omitempty"` // units of level that come with this very grant
	Ack     bool   `json:"ack,omitempty"`    // report at once: somebody waits for what this takes away
	Tight   bool   `json:"tight,omitempty"`  // windows are short: keep no more of the cap than Ahead needs
}

// A Hello answers a report of another epoch: it grants nothing, and all older grants are dead once it is heard.
type Hello struct {
	Epoch uint64 `json:"epoch"`
}
