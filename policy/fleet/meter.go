// SPDX-License-Identifier: Apache-2.0

package fleet

import "github.com/weirproxy/weir/policy"

// A Meter is the bucket, and for windowed limits the ring, with which a node enforces its share. The filter keeps its own in
// shared data; [Local] is one in plain memory. Whatever a meter holds when it is made must be empty: no level, and nothing
// remembered that the controller does not know of.
type Meter interface {
	// Put puts the terms of a lease in force at the time at, in ns: until then the old rate refills. The level becomes
	// min(level + tokens, burst), and what did not fit is returned. Debt stays debt. It must have taken effect for all
	// workers when it returns, for the node then acknowledges it.
	Put(at int64, l policy.Lease, tokens int64) (returned int64)

	// Remembered is how many units the ring still counts; 0 for a continuous limit.
	Remembered(now int64) int64

	// Spent is how many units the ring has counted since the meter was made. What is refunded may stay in it.
	Spent() int64
}

// A Local is a Meter in plain memory.
type Local struct {
	terms  policy.Terms
	window int64
	at     int64 // of the last refill
	level  int64 // units
	rest   int64 // of a unit, in window-ths
	spent  int64
	ring   ring
}

// NewLocal makes an empty meter for a window of so many ns. memory is that of the quota, 0 for a continuous limit.
func NewLocal(now, window, memory int64) *Local {
	return &Local{window: window, at: now, ring: newRing(now, window, memory)}
}

// Put implements Meter.
func (m *Local) Put(at int64, l policy.Lease, tokens int64) (returned int64) {
	m.refill(at)
	m.terms = l.Terms
	m.level += tokens
	return m.clip()
}

// Remembered implements Meter.
func (m *Local) Remembered(now int64) int64 {
	m.ring.advance(now)
	return m.ring.sum
}

// Spent implements Meter.
func (m *Local) Spent() int64 { return m.spent }

// Room is how many units may be taken at the time now.
func (m *Local) Room(now int64) int64 {
	m.refill(now)
	room := m.level
	if m.ring.on() {
		room = min(room, m.terms.Cap-m.Remembered(now))
	}
	return max(room, 0)
}

// Take takes n units, at most Room.
func (m *Local) Take(now, n int64) {
	m.level -= n
	if m.ring.on() {
		m.spent += n
		m.ring.add(now, n)
	}
}

// Level is what is in the bucket.
func (m *Local) Level(now int64) int64 {
	m.refill(now)
	return m.level
}

func (m *Local) refill(now int64) {
	if now <= m.at {
		return
	}
	units, rest := mulAddDiv(m.terms.Rate, now-m.at, m.rest, m.window)
	m.level, m.rest, m.at = m.level+units, rest, now
	m.clip()
}

func (m *Local) clip() (over int64) {
	if over = m.level - m.terms.Burst; over < 0 {
		return 0
	}
	m.level, m.rest = m.terms.Burst, 0
	return over
}
