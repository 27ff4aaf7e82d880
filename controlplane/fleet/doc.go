// SPDX-License-Identifier: Apache-2.0

// Package fleet shares the limits of a policy out over the Envoys of a fleet: it runs the controller's side of the protocol
// of policy/fleet, one instance for each quota that somebody uses, and follows what providers answer.
//
//	reports ──> Controller ──> one document for each node, over xDS
//	               │  quota: Ledger, Lender or Stock
//	               └─ Store: the epoch, and what is left of stocks
//
// All state belongs to one goroutine, [Controller.Run]; who asks from outside is answered by it. Its clock is injected, and
// all that it does is in the core, which has no clock and no goroutine: tests drive that in virtual time.
//
// # Why one document for a node, and not one message for each grant?
//
// Because Envoy applies the newest configuration and may skip those between. What the node has not acknowledged stays in its
// document, so nothing that was skipped is lost, and nothing counts twice.
package fleet

import "time"

// A Record is what outlives the controller: what is left of a stock, how far an adapted rate has come down.
type Record struct {
	Key   string
	Value []byte // nil: the record is to be deleted
}

// A Store keeps records, and the number of the controller. When one begins to use a store, none before it may go on.
type Store interface {
	// NextEpoch gives a number greater than each that it gave before. first says that there was no controller before.
	NextEpoch() (epoch uint64, first bool, err error)
	// Load gives all records. whole says that it has those of every controller before: then what is not among them was not given.
	Load() (records []Record, whole bool, err error)
	// Save keeps records. When it returns without an error they outlive a crash.
	Save([]Record) error
}

// A Clock is the time of a process that goes on.
type Clock interface {
	Now() int64 // ns of a monotonic clock, greater than 0
	Wall() time.Time
}

type realClock struct{ start time.Time }

// NewClock gives the clock of this machine.
func NewClock() Clock { return realClock{time.Now()} }

func (c realClock) Now() int64      { return int64(time.Since(c.start)) + 1 }
func (c realClock) Wall() time.Time { return time.Now() }
