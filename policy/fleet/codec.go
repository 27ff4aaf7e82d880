// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// MaxMessage bounds the size of a message, in bytes: 512 quotas with names of 200 bytes, and all numbers at their longest.
const MaxMessage = 256 << 10

// maxName bounds names of nodes and keys, in bytes.
const maxName = 256

var errCanonical = errors.New("not in the canonical form: compact, fields in order, each once, none that is zero where it may be left out")

// A Message is what travels: a [Report], [Shares], a [Hello], or one of the messages of escrows and stocks.
type Message interface {
	Report | Shares | Hello | Asks | Lent | Draw | Chunk
}

// checker is what can say whether its amounts are in bounds.
type checker interface{ check() error }

// Encode gives a message as canonical JSON: there is just one encoding of each.
func Encode[M Message](m *M) []byte {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // there are only strings and numbers in a message
	}
	return b
}

// Decode reads what [Encode] gives, and nothing else: what is not canonical, or has an amount out of bounds, is an error.
func Decode[M Message](b []byte) (*M, error) {
	if len(b) > MaxMessage {
		return nil, fmt.Errorf("a message of %d bytes, at most %d", len(b), MaxMessage)
	}
	m := new(M)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	if !bytes.Equal(Encode(m), b) {
		return nil, errCanonical
	}
	if c, ok := any(m).(checker); ok {
		return m, c.check()
	}
	return m, nil
}

func checkName(what, s string) error {
	if s == "" || len(s) > maxName {
		return fmt.Errorf("%s of %d bytes, 1 to %d", what, len(s), maxName)
	}
	return nil
}

// checkAmounts refuses what no honest peer says: an amount below zero, or so large that sums of them would not fit.
func checkAmounts(amounts ...int64) error {
	for _, a := range amounts {
		if a < 0 || a > maxUnits {
			return fmt.Errorf("an amount of %d, 0 to %d", a, int64(maxUnits))
		}
	}
	return nil
}

// checkSums refuses sums over a life that are below zero, or near the end of 63 bits.
func checkSums(sums ...int64) error {
	for _, a := range sums {
		if a < 0 || a > math.MaxInt64/2 {
			return fmt.Errorf("a sum of %d", a)
		}
	}
	return nil
}

func (r *Report) check() error {
	errs := []error{checkName("a node", r.Node)}
	seen := map[string]bool{}
	for _, h := range r.Holdings {
		errs = append(errs, checkName("a key", h.Key), checkAmounts(h.Demand, h.Rate, h.Cap, h.Remembered, h.Floor), checkSums(h.Returned, h.Spent))
		if seen[h.Key] {
			errs = append(errs, fmt.Errorf("key %q twice", h.Key))
		}
		seen[h.Key] = true
	}
	return errors.Join(errs...)
}

func (s *Shares) check() error {
	var errs []error
	for _, g := range s.Grants {
		errs = append(errs, checkName("a key", g.Key), checkAmounts(g.Rate, g.Burst, g.Cap, g.Floor, g.Tokens))
		if g.Lease < 0 || g.Forget < 0 || g.Lease > maxTime || g.Forget > maxTime {
			errs = append(errs, fmt.Errorf("a lease of %d ns and %d more", g.Lease, g.Forget))
		}
		if g.Floor > g.Rate {
			errs = append(errs, fmt.Errorf("a floor of %d above a rate of %d", g.Floor, g.Rate))
		}
	}
	return errors.Join(errs...)
}

// maxTime bounds times in messages, in ns: 31 days.
const maxTime = 31 * 24 * 3600 * 1_000_000_000
