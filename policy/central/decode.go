// SPDX-License-Identifier: Apache-2.0

package central

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/weirproxy/weir/policy"
)

// ErrMalformed is the error of every message that Append does not make.
var ErrMalformed = errors.New("malformed message of a central limit")

// Decode reads a message.
func (m *Take) Decode(b []byte) error {
	r := reader{b: b}
	r.begin(letterTake)
	r.id(&m.ID)
	m.Node = r.text()
	m.Lease = r.micros(MaxLease)
	m.Tiers = Tiers(r.number(1<<16 - 1))
	m.Provider, m.Model = r.text(), r.text()
	c := &m.Caller
	for _, s := range [...]*string{&c.Environment, &c.Tenant, &c.User, &c.Tool, &c.Tree, &c.Base} {
		*s = r.text()
	}
	c.Vouched = r.byte(1) == 1
	r.cost(&m.Cost)
	return r.end()
}

// Decode reads a message.
func (m *Settles) Decode(b []byte) error {
	r := reader{b: b}
	r.begin(letterSettle)
	m.Node = r.text()
	n := r.number(MaxCalls)
	r.bad = r.bad || n == 0
	m.Calls = make([]Settle, n)
	for i := range m.Calls {
		r.id(&m.Calls[i].ID)
		r.cost(&m.Calls[i].Cost)
	}
	return r.end()
}

// Decode reads a message.
func (m *Answer) Decode(b []byte) error {
	r := reader{b: b}
	r.begin(letterAnswer)
	m.Verdict = policy.Verdict(r.byte(byte(policy.Deny)))
	r.refusal(&m.Refusal)
	r.refusal(&m.Shadow)
	return r.end()
}

// A reader takes a message apart; after what it does not understand it gives zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) end() error {
	if r.bad || len(r.b) > 0 {
		return ErrMalformed
	}
	return nil
}

func (r *reader) next(n int) []byte {
	if r.bad = r.bad || n > len(r.b); r.bad {
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte(most byte) byte {
	b := r.next(1)
	if r.bad = r.bad || b[0] > most; r.bad {
		return 0
	}
	return b[0]
}

func (r *reader) begin(letter byte) {
	b := r.next(2)
	r.bad = r.bad || b[0] != letter || b[1] != version
}

func (r *reader) id(to *ID) { copy(to[:], r.next(len(to))) }

func (r *reader) number(most int64) int64 {
	n, size := binary.Uvarint(r.b)
	// A last byte of 0 adds nothing: the same number has a shorter form.
	if r.bad = r.bad || size <= 0 || size > 1 && r.b[size-1] == 0 || n > uint64(most); r.bad {
		return 0
	}
	r.b = r.b[size:]
	return int64(n)
}

func (r *reader) signed() int64 {
	n, size := binary.Varint(r.b)
	if r.bad = r.bad || size <= 0 || size > 1 && r.b[size-1] == 0; r.bad {
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) micros(most time.Duration) time.Duration {
	return time.Duration(r.number(int64(most/time.Microsecond))) * time.Microsecond
}

func (r *reader) text() string { return string(r.next(int(r.number(maxText)))) }

func (r *reader) cost(to *policy.Cost) {
	for _, n := range [...]*int64{&to.Requests, &to.Input, &to.Output, &to.Retries, &to.Spend} {
		*n = r.number(policy.MaxUnits)
	}
}

func (r *reader) refusal(to *policy.Refusal) {
	if to.Reason = policy.Reason(r.byte(255)); to.Reason == policy.None {
		return
	}
	to.Tier, to.Dimension = policy.Tier(r.byte(255)), policy.Dimension(r.byte(255))
	for _, n := range [...]*int64{&to.Limit, &to.Burst, &to.Need} {
		*n = r.number(policy.MaxUnits)
	}
	to.Window, to.Wait = r.micros(maxTime), r.micros(maxTime)
	to.Remaining = r.signed()
}

// maxTime is the longest time in a message: two windows and a bit.
const maxTime = 3 * policy.MaxWindow
