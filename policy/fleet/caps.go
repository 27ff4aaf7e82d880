// SPDX-License-Identifier: Apache-2.0

package fleet

// A capRound is the window side of a rebalance.
type capRound struct {
	limit, sum int64 // units that may be held in a window, and that may be
	free, lack int64
	tight      bool  // somebody lacks more than is free
	wish       int64 // what all would like beyond their need
}

// peerCaps is the window side of a peer.
type peerCaps struct {
	base int64 // what it may hold, its earlier lives left out
	need int64 // what it must be able to hold so that it is not stopped before its next grant
	lack int64
}

// countCaps adds up what nodes may hold of a window.
func (l *Ledger) countCaps(now int64) {
	if !l.quota.windowed() {
		return
	}
	c := &l.round.caps
	c.limit = l.quota.Limit
	learning := now < l.learnCaps
	if learning {
		c.limit = 0
	}
	for _, p := range l.peers {
		p.wane(now, l.memory(), &l.whole)
		p.caps = peerCaps{base: p.capBase(now, l.memory(), &l.whole)}
		if p.incarnation == 0 && learning {
			p.caps.base = 0
		}
		c.sum += p.caps.base + p.spooky(now, l.memory())
		if learning {
			c.limit += p.capCredit
		}
	}
	if now < l.unheardCaps && !learning {
		c.limit -= l.unheard()
	}
	c.free = c.limit - c.sum
}

// capTargets decides what each node needs to hold of a window: what it remembers, for that is spent, and what it spends at
// its rate until the next grant. The rates decide what is fair; caps only follow them.
func (l *Ledger) capTargets() {
	if !l.quota.windowed() {
		return
	}
	c := &l.round.caps
	for _, p := range l.peers {
		if p.locked {
			continue
		}
		k := &p.caps
		k.need = max(p.trail.remembered+part(p.share, int64(l.params.Ahead), l.quota.Window), l.floorOf(p))
		k.lack = max(k.need-k.base, 0)
		c.lack += k.lack
		c.wish += max(p.share-max(k.base, k.need), 0)
	}
	c.tight = c.lack > c.free
}

// capFor gives the cap of a grant. What it adds to what the node may hold is taken from what is free.
func (l *Ledger) capFor(p *peer) int64 {
	if !l.quota.windowed() {
		return 0
	}
	c, k := &l.round.caps, &p.caps
	switch {
	case c.limit < c.sum: // after a cut: all come down in proportion, below what they remember if need be
		return max(part(k.base, max(c.limit, 0), max(c.sum, 1)), min(l.floorOf(p), k.base))
	case k.lack > 0:
		add := min(k.lack, max(c.free, 0))
		if c.tight {
			add = min(part(k.lack, max(c.free, 0), c.lack), add)
		}
		c.free, c.lack = c.free-add, c.lack-k.lack // so that free/lack stays the same for the next
		if k.base, k.lack = k.base+add, 0; c.tight {
			return k.base
		}
	case c.tight:
		return k.need
	}
	return l.spareCap(p)
}

// spareCap lets a node that lacks nothing have more than it needs now, up to its share, while nobody lacks.
func (l *Ledger) spareCap(p *peer) int64 {
	c, k := &l.round.caps, &p.caps
	want := max(k.need, p.share)
	if want <= k.base {
		return want
	}
	add := min(want-k.base, part(max(c.free-c.lack, 0), want-k.base, max(c.wish, 1)))
	c.free -= add
	k.base += add
	return k.base
}
