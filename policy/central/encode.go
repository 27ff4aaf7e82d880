// SPDX-License-Identifier: Apache-2.0

package central

import (
	"encoding/binary"
	"time"

	"github.com/weirproxy/weir/policy"
)

const (
	letterTake   = 'T'
	letterSettle = 'S'
	letterAnswer = 'A'
	version      = 1
)

// Append adds the message to b.
func (m *Take) Append(b []byte) []byte {
	b = append(b, letterTake, version)
	b = append(b, m.ID[:]...)
	b = text(b, m.Node)
	b = micros(b, m.Lease)
	b = binary.AppendUvarint(b, uint64(m.Tiers))
	b = text(b, m.Provider)
	b = text(b, m.Model)
	c := &m.Caller
	for _, s := range [...]string{c.Environment, c.Tenant, c.User, c.Tool, c.Tree, c.Base} {
		b = text(b, s)
	}
	b = append(b, 0)
	if c.Vouched {
		b[len(b)-1] = 1
	}
	return cost(b, &m.Cost)
}

// Append adds the message to b.
func (m *Settles) Append(b []byte) []byte {
	b = append(b, letterSettle, version)
	b = number(text(b, m.Node), int64(len(m.Calls)))
	for i := range m.Calls {
		c := &m.Calls[i]
		b = cost(append(b, c.ID[:]...), &c.Cost)
	}
	return b
}

// Append adds the message to b.
func (m *Answer) Append(b []byte) []byte {
	b = append(b, letterAnswer, version, byte(m.Verdict))
	return refusal(refusal(b, &m.Refusal), &m.Shadow)
}

// text and what follows are not inlined: a message is made of many of them, and the filter is small.
//
//go:noinline
func text(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

//go:noinline
func number(b []byte, n int64) []byte { return binary.AppendUvarint(b, uint64(max(n, 0))) }

func micros(b []byte, d time.Duration) []byte {
	return number(b, int64((d+time.Microsecond-1)/time.Microsecond))
}

func cost(b []byte, c *policy.Cost) []byte {
	for _, n := range [...]int64{c.Requests, c.Input, c.Output, c.Retries, c.Spend} {
		b = number(b, n)
	}
	return b
}

func refusal(b []byte, r *policy.Refusal) []byte {
	b = append(b, byte(r.Reason))
	if r.Reason == policy.None {
		return b
	}
	b = append(b, byte(r.Tier), byte(r.Dimension))
	for _, n := range [...]int64{r.Limit, r.Burst, r.Need} {
		b = number(b, n)
	}
	return binary.AppendVarint(micros(micros(b, r.Window), r.Wait), r.Remaining)
}
