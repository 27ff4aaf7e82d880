// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirproxy/weir/policy"
)

// A Store is safe for concurrent use. Each call ends within a second or two, whatever became of the other end: then with an
// error that is [ErrUnavailable], and nobody knows whether it was done. All may be sent again.
type Store interface {
	// Lead makes who the one that leads name, or renews that. Somebody else's lead gives a *HeldError.
	Lead(ctx context.Context, name, who string, lease time.Duration) (Term, error)
	// Resign ends a term before its time. Of one that is over already it says nothing.
	Resign(ctx context.Context, t Term) error

	// Save writes records, all or none, if the term still holds; else ErrFenced.
	Save(ctx context.Context, t Term, records ...Record) error
	// Load gives the records whose keys begin with prefix, in order of their keys.
	Load(ctx context.Context, prefix string) ([]Record, error)

	// Take takes a call's cost from all its buckets, or from none. Under an id that is known it gives the first answer again.
	Take(ctx context.Context, t *Take) (Answer, error)
	// Settle makes a take count as what it cost. One that is not known, or was settled, or whose lease is over, stays as it is;
	// but a take under this id that comes later is refused.
	Settle(ctx context.Context, id string, actual policy.Cost) (settled bool, err error)

	// String says which store it is, without secrets.
	String() string
	Close() error
}

// A Term is the time in which somebody leads. Its token is greater than that of every term before, so that it does for an
// epoch, and what an earlier leader still writes is known for what it is.
type Term struct {
	Name, Who string
	Token     uint64
	Until     time.Time // by this machine's clocks, and earlier than at the store
	First     bool      // there was none before in this file. Of a Redis that is empty nobody can tell whether it has forgotten one
}

// Holds says whether it is not over, by either clock of this machine: the monotonic one stands still while a machine sleeps, the
// other one may be put back.
func (t *Term) Holds() bool {
	now := time.Now()
	return now.Before(t.Until) && now.Round(0).Before(t.Until.Round(0))
}

// A Record is something that a leader keeps: a day's stock, the rate that an adapted limit has come to. Without a value it is
// deleted.
type Record struct {
	Key   string
	Value []byte
}

var (
	// ErrUnavailable is an error of the store, not of what it was asked.
	ErrUnavailable = errors.New("the store is not available")
	// ErrFenced says that somebody else leads by now.
	ErrFenced = errors.New("this term is over: somebody else may lead by now")
)

// A HeldError says that somebody else leads.
type HeldError struct {
	Name, By string
	For      time.Duration // at most, without being renewed
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is led by %s, for %v more if that is not renewed", e.Name, e.By, e.For.Round(time.Millisecond))
}

// unavailable says what was being done when the store failed.
func unavailable(op string, err error) error {
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, op, err)
}

// MaxName bounds names, keys and ids, in bytes.
const MaxName = 256

func checkNames(names ...string) error {
	for _, n := range names {
		if n == "" || len(n) > MaxName {
			return fmt.Errorf("a name of %d bytes, 1 to %d", len(n), MaxName)
		}
	}
	return nil
}
