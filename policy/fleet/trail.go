// SPDX-License-Identifier: Apache-2.0

package fleet

// A trail is what the controller knows of what a node spent in the last window: how much its ring counted at its last report,
// and how much it had spent in its life at some reports before that. So what it spent before a report is known to have left
// its ring when a window has passed since that came.
type trail struct {
	since         int64 // the last report was not sent before this
	spent         int64 // in sum until the last report
	remembered    int64 // by the ring at the last report
	rememberedEnd int64 // then it counts none of that any more
	marks         []mark
}

// A mark is how much a node had spent, in sum, at a report that came at the time at.
type mark struct{ at, spent int64 }

// marksOfWindow is how finely what a node spent is known: the more, the sooner it comes back when the node is lost.
const marksOfWindow = 16

// note takes in a report. since is a time that it was certainly sent after: when the grant was sent that it acknowledges.
func (t *trail) note(now, memory, since int64, h *Holding) {
	t.since = max(t.since, since)
	t.spent, t.remembered, t.rememberedEnd = h.Spent, min(h.Remembered, maxUnits), now+memory
	if n := len(t.marks); n == 0 || now-t.marks[n-1].at >= memory/marksOfWindow {
		t.marks = append(t.marks, mark{now, h.Spent})
	}
	for len(t.marks) > 1 && t.marks[1].at+memory <= now {
		t.marks = t.marks[1:]
	}
}

// faded is how much of what the node had spent by its last report its ring may still count.
func (t *trail) faded(now, memory int64) int64 {
	if now >= t.rememberedEnd {
		return 0
	}
	gone := int64(0)
	for _, m := range t.marks {
		if m.at+memory <= now {
			gone = m.spent
		}
	}
	return max(min(t.remembered, t.spent-gone), 0)
}

// A ghost is what an earlier life of a node may have spent in the last window.
type ghost struct {
	units, end int64 // no more than so many, none after this
	later      int64 // units that it may have spent after its last report while its leases lasted
	floor      int64 // units that it may have spent in a window without a lease
	trail      trail
}

// left is what may still count. Without a lease a node spends no more than makes its floor, together with what it has spent
// before: the greater of the two counts, not their sum.
func (g *ghost) left(now, memory int64) int64 {
	return min(g.units, max(g.floor, g.trail.faded(now, memory)+g.later))
}

const maxGhosts = 8

// spooky is what the earlier lives of the node may have spent in the last window.
func (p *peer) spooky(now, memory int64) (units int64) {
	for len(p.ghosts) > 0 && now >= p.ghosts[0].end {
		p.ghosts = p.ghosts[1:]
	}
	for i := range p.ghosts {
		units += p.ghosts[i].left(now, memory)
	}
	return units
}

// haunt adds the life that has just ended.
func (p *peer) haunt(now, memory int64, old *peer, q *Quota) {
	units := old.capBase(now, memory, q)
	if units == 0 || memory == 0 {
		return
	}
	p.ghosts = append(p.ghosts, ghost{units, now + memory, old.later(now, q), old.floorIn(now, memory), old.trail})
	if len(p.ghosts) > maxGhosts { // two become one that covers both
		a, b := &p.ghosts[0], &p.ghosts[1]
		b.units, b.later = a.left(now, memory)+b.left(now, memory), maxUnits
		p.ghosts = p.ghosts[1:]
	}
}

// later is the most that the node may have spent since its last report: a full bucket, the tokens on their way, and what its
// highest rate refills until the last of its leases ends. After that it has its floor.
func (p *peer) later(now int64, q *Quota) int64 {
	rate, tokens, end := p.floor, int64(0), int64(0)
	for _, h := range p.holds {
		rate, end = max(rate, h.rate), max(end, h.end)
		if h.version > p.acked {
			tokens += h.tokens
		}
	}
	dt := max(min(now, end)-p.trail.since, 0)
	return 2 + q.burstOf(rate) + tokens + part(rate, dt+dt/clockError, q.Window)
}
