// SPDX-License-Identifier: Apache-2.0

package fleet

// A peer is what the ledger has on a node.
type peer struct {
	name                string
	incarnation, number uint64
	seen                int64 // when its last report came
	demand              int64 // units per window
	acked               uint64
	version             uint64 // of the last grant
	holds               []hold // by version; the first may have been superseded, the node has not said so

	trail  trail
	ghosts []ghost

	seated   bool  // it has one of the places with a floor
	floor    int64 // units per window that it keeps after its lease
	floorEnd int64

	oldFloor, oldFloorEnd int64 // forgotten, and until then perhaps remembered by its ring

	returned              int64
	rateCredit, capCredit int64 // what it held when it was first heard in this epoch

	due      bool  // a report has had no answer
	target   int64 // rate of the last grant
	sentAt   int64 // when that was
	shrunkAt int64 // when it was last asked to shrink at once

	peerRound
}

// A hold is a grant that the node may be enforcing.
type hold struct {
	version   uint64
	rate, cap int64
	tokens    int64
	sent      int64
	end       int64 // of the lease by the controller's clock, later than by the node's
}

const maxHolds = 24

// rateBound is the highest rate that the node may be spending at.
func (p *peer) rateBound(now int64) (u int64) {
	if now < p.floorEnd {
		u = p.floor
	}
	for i := range p.holds {
		if now < p.holds[i].end {
			u = max(u, p.holds[i].rate)
		}
	}
	return u
}

// capBase is the most that the node's share of a window may come to, its earlier lives left out: caps that may be in force,
// those that were within the memory of its ring, as far as they may have been used, and what that counted when it last
// reported.
func (p *peer) capBase(now, memory int64, q *Quota) int64 {
	u, over := p.trail.faded(now, memory), int64(0)
	for i := range p.holds {
		switch h := &p.holds[i]; {
		case now < h.end:
			u = max(u, h.cap)
		case now < h.end+memory:
			over = max(over, h.cap)
		}
	}
	u = max(u, p.floorIn(now, memory))
	if over > u {
		u = max(u, min(over, p.usable(now, memory, q)))
	}
	return u
}

// usable is the most that the ring may count: what it counted at the last report, as far as that has not left the window,
// and all that can have been spent since.
func (p *peer) usable(now, memory int64, q *Quota) int64 {
	return p.trail.faded(now, memory) + p.later(now, q)
}

// wane lowers the caps of leases that are over to what can have been used of them. It is kept, for the estimate is of this
// moment: with the next report or grant it may be a looser one.
func (p *peer) wane(now, memory int64, q *Quota) {
	for i := range p.holds {
		if h := &p.holds[i]; now >= h.end {
			h.cap = min(h.cap, p.usable(now, memory, q))
		}
	}
}

// covered says whether returned tokens may be believed: every grant that the node may have held since its last report is
// still listed, none has lapsed. Then all the time they were inside the burst of a listed grant, and may move to the pool as
// that is dropped. Tokens that were outside for a moment have been replaced by what flowed into the pool: to credit them
// would let the quota's bucket rise by more than its rate.
func (p *peer) covered(now int64, h *Holding) bool {
	if len(p.holds) == 0 || p.holds[0].version > p.acked {
		return false
	}
	for _, g := range p.holds {
		if g.version < h.Version && now >= g.end || g.version == h.Version && h.Rate < g.rate {
			return false
		}
	}
	return true
}

// list puts a grant into the ledger. It must be listed before it is sent.
func (p *peer) list(h hold) {
	p.holds = append(p.holds, h)
	if len(p.holds) <= maxHolds {
		return
	}
	// Join the two oldest into one that covers both. It has the later version: its tokens are not believed.
	a, b := p.holds[0], &p.holds[1]
	b.rate, b.cap, b.end = max(a.rate, b.rate), max(a.cap, b.cap), max(a.end, b.end)
	b.tokens, b.sent = a.tokens+b.tokens, min(a.sent, b.sent)
	p.holds = p.holds[1:]
}

// keepFloor notes a floor that a grant is about to give. One that is forgotten must not come back with it: of that, only
// what a ring may still remember counts.
func (p *peer) keepFloor(now, memory, floor, end int64) {
	if now >= p.floorEnd {
		if now < p.floorEnd+memory {
			p.oldFloor, p.oldFloorEnd = max(p.oldFloor, p.floor), p.floorEnd+memory
		}
		p.floor = 0
	}
	p.floor, p.floorEnd = max(p.floor, floor), max(p.floorEnd, end)
}

// floorIn is what the node may spend in a window without a lease.
func (p *peer) floorIn(now, memory int64) (u int64) {
	if now < p.floorEnd+memory {
		u = p.floor
	}
	if now < p.oldFloorEnd {
		u = max(u, p.oldFloor)
	} else {
		p.oldFloor = 0
	}
	return u
}

// expire drops the grants that are over, but for the last, which says whether tokens are covered.
func (p *peer) expire(now, memory int64) {
	for len(p.holds) > 1 && now >= p.holds[0].end+memory {
		p.holds = p.holds[1:]
	}
}
