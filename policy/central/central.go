// SPDX-License-Identifier: Apache-2.0

// Package central is how an Envoy asks the control plane for limits of scope central, in a binary form that needs neither
// reflection nor memory:
//
//	POST /v1/central/take    a Take,   answered by an Answer
//	POST /v1/central/settle  a Settles, answered by 204
//
// A message is a letter that says which it is, the version 1, and its fields in the order of the structs. Numbers are unsigned
// varints (encoding/binary), Remaining a signed one, strings their length and their bytes, an id is 16 bytes. Times are in
// microseconds, waits rounded up. There is just one encoding of each message; anything else is refused.
//
// The control plane reckons the buckets by its own policy: a message says who asks and what it costs, not what may be had.
package central

import (
	"time"

	"github.com/weirproxy/weir/policy"
)

// An ID tells a call from every other: it is random. Take and settle may be sent again under it, and count once.
type ID [16]byte

// A Take asks for a call's cost on all its central limits.
type Take struct {
	ID       ID
	Node     string        // of the Envoy that asks; it must be its own
	Lease    time.Duration // not settled within it, the call counts as its cost
	Tiers    Tiers         // whose limits are central
	Provider string
	Model    string // the entry of the provider's models that it has, or its name; empty: no model's limits apply
	Caller   policy.Caller
	Cost     policy.Cost
}

// Tiers is a set of tiers: bit policy.Tier.
type Tiers uint64

// Has says whether a tier is in the set.
func (t Tiers) Has(tier policy.Tier) bool { return t>>tier&1 != 0 }

// With is the set with one more.
func (t Tiers) With(tier policy.Tier) Tiers { return t | 1<<tier }

// A Settles says what calls cost in the end.
type Settles struct {
	Node  string
	Calls []Settle // 1 to MaxCalls
}

// A Settle is one of them. What was not sent costs nothing.
type Settle struct {
	ID   ID
	Cost policy.Cost
}

// An Answer to a Take. A call that was admitted has to be settled.
type Answer struct {
	Verdict policy.Verdict
	Refusal policy.Refusal // if it was denied
	Shadow  policy.Refusal // what a limit in shadow mode would have said
}

// Where the control plane takes messages.
const (
	TakePath   = "/v1/central/take"
	SettlePath = "/v1/central/settle"
)

// Bounds of messages.
const (
	MaxMessage = 2048
	MaxLease   = time.Hour
	MaxCalls   = 32

	maxText = 256
)
