// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirproxy/weir/policy"
)

// A Take is a call that wants to pass central limits.
type Take struct {
	ID    string        // random: it tells this call from every other
	Lease time.Duration // not settled within it, the call counts as what it reserved
	Cost  policy.Cost
	Items []Item
}

// An Item is one bucket that the call has to pass.
type Item struct {
	Bucket   string
	Meters   []Meter
	InFlight int64 // calls; 0: no limit
	Shadow   bool  // counts, and refuses nothing
}

// A Meter is one dimension of a limit. Times are in microseconds, which is what Redis tells: in its Lua every number is a
// float, so everything here stays below 2^53.
type Meter struct {
	ID     int64 // the dimension and which of several windows: what has the same goes on counting when the rest changes
	Unit   policy.Unit
	Kind   policy.WindowKind
	Paced  bool
	Limit  int64
	Burst  int64
	Window int64
	Counts int64 // slots of a ring that count
	From   int64 // of a fixed window as it is now: when it began and ends, by the wall clock
	Until  int64
	Guard  int64 // around the end: a call counts in both windows
}

// NewMeter makes a meter of a policy's. now is the wall clock: it says which fixed window it is.
func NewMeter(m policy.Meter, now time.Time) Meter {
	s := Meter{
		ID: int64(m.ID()), Unit: m.Dimension.Unit(), Kind: m.Kind, Paced: m.Paced(), Limit: m.Limit(), Burst: m.Burst(),
		Window: max(m.Window().Microseconds(), 1), Counts: int64(m.Slots()),
	}
	if m.Kind == policy.Fixed {
		guard := m.Guard()
		from, until := m.Period(now.Add(-guard))
		s.From, s.Until, s.Guard = from.UnixMicro(), until.UnixMicro(), guard.Microseconds()
	}
	return s
}

// An Answer is what became of a take.
type Answer struct {
	Verdict Verdict
	Denied  Refusal // the limit that refused; of several the one with the longest wait
	Shadow  Refusal // the one that would have, were it not in shadow mode
}

// A Verdict is what became of a take in a word.
type Verdict uint8

// Verdicts.
const (
	Denied   Verdict = iota
	Admitted         // it holds what it asked for, until it is settled or its lease is over
	Settled          // it was settled before it came: whoever sent it has given up on it
)

// A Refusal is one limit that did not admit a take.
type Refusal struct {
	Refused   bool
	Item      int
	Meter     int           // within the item; -1: calls in flight
	Wait      time.Duration // after which it would be admitted if nobody else came; TooLarge: never
	Remaining int64
}

// TooLarge is the wait of what never fits.
const TooLarge = time.Duration(-1)

// maxItems and maxMeters bound a take, maxLease the time for which it may hold something.
const (
	maxItems  = 16
	maxMeters = 32
	maxLease  = 24 * time.Hour
)

// check refuses what would make the rule count wrongly: all else is the policy's compiler's to refuse.
func (t *Take) check() error {
	if err := checkNames(t.ID); err != nil {
		return err
	}
	if t.Lease <= 0 || t.Lease > maxLease {
		return fmt.Errorf("a lease of %v, more than nothing and at most %v", t.Lease, maxLease)
	}
	if err := checkCost(t.Cost); err != nil {
		return err
	}
	if len(t.Items) > maxItems {
		return fmt.Errorf("%d buckets, at most %d", len(t.Items), maxItems)
	}
	seen := map[string]bool{}
	for _, i := range t.Items {
		if seen[i.Bucket] || len(i.Meters) > maxMeters {
			return errors.New("a bucket twice, or with too many meters")
		}
		seen[i.Bucket] = true
		if err := checkNames(i.Bucket); err != nil {
			return err
		}
	}
	return nil
}

func checkCost(c policy.Cost) error {
	for _, n := range units(c) {
		if n < 0 || n > policy.MaxUnits {
			return fmt.Errorf("a cost of %d, 0 to %d", n, int64(policy.MaxUnits))
		}
	}
	return nil
}

// units gives a cost by policy.Unit.
func units(c policy.Cost) (n [6]int64) {
	for u := range n {
		n[u] = c.In(policy.Unit(u))
	}
	return n
}

// need is what a meter is asked for.
func (t *Take) need(m *Meter) int64 { return t.Cost.In(m.Unit) }
