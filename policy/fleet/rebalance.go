// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"time"
)

// A Push is a grant that is to be sent to a node.
type Push struct {
	Node        string
	Incarnation uint64
	Grant
}

// A round is one rebalance: the sums over all peers.
type round struct {
	limit      int64 // units per window that may be lent
	sum        int64 // of what nodes may spend
	locked     int64 // the part of it that cannot be moved, for its nodes are silent
	free, lack int64
	take       bool // somebody lacks more than is free: those who have more than their share are asked at once
	demand     int64
	live       int64 // nodes that are not silent
	caps       capRound
}

// A peerRound is what one rebalance has on one peer.
type peerRound struct {
	rate   int64 // what it may be spending
	share  int64 // what it should have
	locked bool
	slot   bool // it is among those that have a floor
	caps   peerCaps
}

// What is worth a message of its own, as parts of a node's rate and of the average rate.
const (
	pushPart    = 10 // a change by a tenth of the node's rate, and
	pushAverage = 10 // by a tenth of limit/nodes to shrink, by half of that to grow
	ackPart     = 50 // an answer that takes away this part of the rate asks for an acknowledgement
	takePart    = 500
	sparePart   = 50 // with so little free while somebody lacks, answers carry no more than is lacked

	shrinkGap = 800 * time.Millisecond // between two demands to shrink at once
	growGap   = 500 * time.Millisecond // between two grants that add little
	growSoon  = 50 * time.Millisecond  // between two grants that add much

	lentPart = 10 // all but this part of what is left over is lent out, half of it evenly, half by demand
)

// Rebalance decides what each node should have, and gives the grants that lead there, appended to out: those that shrink at
// once, those that grow only out of what is certainly free. Each report gets an answer.
func (l *Ledger) Rebalance(now int64, out []Push) []Push {
	l.fillPool(now)
	l.forget(now)
	l.count(now)
	l.clampPool()
	l.targets()
	l.capTargets()
	out = l.shrink(now, out)
	out = l.grow(now, out)
	out = l.answer(now, out)
	l.close(now)
	return out
}

// fillPool adds what flows into the pool: the part of the limit that no node may be spending.
func (l *Ledger) fillPool(now int64) {
	dt := max(now-l.last, 0)
	dt -= (dt + clockError - 1) / clockError // our clock may be fast
	n, rest := mulAddDiv(l.inflow, dt, l.poolRest, l.quota.Window)
	l.pool, l.poolRest = l.pool+n, rest
	l.last = max(l.last, now)
}

// clampPool keeps the pool within the burst that belongs to what no node may be spending: pool + bursts <= burst.
func (l *Ledger) clampPool() {
	l.pool = min(l.pool, l.whole.burstOf(max(l.round.limit-l.round.sum, 0)))
}

// forget drops peers that can hold nothing any more.
func (l *Ledger) forget(now int64) {
	memory := l.memory()
	l.peers = slices.DeleteFunc(l.peers, func(p *peer) bool {
		gone := now-p.seen > int64(l.params.Lease) && now >= p.floorEnd+memory && now >= max(l.learnCaps, l.learnRates) &&
			p.capBase(now, memory, &l.whole) == 0 && p.rateBound(now) == 0 && p.spooky(now, memory) == 0
		if gone {
			delete(l.named, p.name)
		}
		return gone
	})
}

// count adds up what nodes may be spending. While the ledger learns, nothing counts but what nodes of this epoch brought:
// they move it among themselves, and all others hold no more than the controller before allowed for.
func (l *Ledger) count(now int64) {
	r := round{limit: l.quota.Limit}
	learning := now < l.learnRates
	if learning {
		r.limit = 0
	}
	slots := int64(0)
	for _, p := range l.peers {
		p.expire(now, l.memory())
		p.slot = slots < l.quota.Nodes
		if p.slot {
			slots++
		}
		p.rate, p.locked = p.rateBound(now), now-p.seen > int64(l.params.Silent)
		r.sum += p.rate
		if learning {
			r.limit += p.rateCredit
		}
		if p.locked {
			r.locked += p.rate
		} else {
			r.live++
			r.demand += max(p.demand, l.floorOf(p))
		}
	}
	if now < l.unheardRates && !learning {
		r.limit -= l.unheard(slots)
	}
	l.countCaps(now, &r)
	r.free = r.limit - r.sum
	l.round = r
}

// unheard is what nodes that this controller has not heard of may keep as floors.
func (l *Ledger) unheard(slots int64) int64 { return (l.quota.Nodes - slots) * l.quota.floor() }

func (l *Ledger) floorOf(p *peer) int64 {
	if p.slot {
		return l.quota.floor()
	}
	return 0
}

// targets decides what each node should have: its max-min share, and of what is left over nearly all as well, so that it may
// rise at once. The rest stays in the pool for those who join.
func (l *Ledger) targets() {
	r := &l.round
	l.wants, l.x = l.wants[:0], l.x[:0]
	for _, p := range l.peers {
		w := Want{}
		if !p.locked {
			w = Want{l.floorOf(p), min(p.demand, l.quota.Limit), 1}
		}
		l.wants, l.x = append(l.wants, w), append(l.x, 0)
	}
	l.filler.Fill(r.limit-r.locked, l.wants, l.x)
	left := r.limit - r.locked
	for i, p := range l.peers {
		p.share = l.x[i]
		left -= p.share
	}
	lent := max(left-left/lentPart, 0)
	for i, p := range l.peers {
		if p.locked {
			continue
		}
		if lack := p.share - p.rate; lack > 0 {
			r.lack += min(lack, max(l.wants[i].Demand-p.rate, 0))
		}
		p.share += lent/2/r.live + part(lent/2, p.demand, max(r.demand, 1))
	}
	r.take = r.lack > r.free+r.limit/takePart
}

// shrink lowers those who have more than their share. It waits for nothing: to shrink is always safe.
func (l *Ledger) shrink(now int64, out []Push) []Push {
	r := &l.round
	for _, p := range l.peers {
		over := p.rate - p.share
		if p.locked || over <= 0 {
			continue
		}
		large := over > max(p.rate/pushPart, r.limit/pushAverage/int64(len(l.peers)))
		switch {
		case p.due:
			out = l.give(now, p, p.share, 0, r.take && over > p.rate/ackPart, out)
		case r.take && large && now-p.shrunkAt > int64(shrinkGap):
			out = l.give(now, p, p.share, 0, true, out)
		default:
			continue
		}
		if r.take {
			p.shrunkAt = now
		}
	}
	return out
}

// grow raises those who lack, out of what is free, each by the same part of what it lacks.
func (l *Ledger) grow(now int64, out []Push) []Push {
	r := &l.round
	free := r.free
	for i, p := range l.peers {
		lack := min(p.share, l.wants[i].most()) - p.rate
		if p.locked || lack <= 0 || free <= 0 {
			continue
		}
		add := lack
		if r.lack > free {
			add = part(lack, free, r.lack)
		}
		add = min(add, r.free)
		if add > 0 && (p.due || l.worthPush(now, p, add)) {
			r.free -= add
			p.rate += add
			out = l.give(now, p, p.rate, l.carry(add), false, out)
		}
	}
	return out
}

func (l *Ledger) worthPush(now int64, p *peer, add int64) bool {
	if add <= max(p.rate/pushPart, l.round.limit/pushAverage/2/int64(len(l.peers))) {
		return false
	}
	since := time.Duration(now - p.sentAt)
	return since > growGap || since > growSoon && add > p.rate*3/10
}

// answer renews the shares of those whose report has had no answer yet, and lends them what is left over.
func (l *Ledger) answer(now int64, out []Push) []Push {
	r := &l.round
	for _, p := range l.peers {
		if !p.due || p.locked {
			continue
		}
		add := min(max(p.share-p.rate, 0), max(r.free, 0))
		if r.lack > 0 && r.free < r.limit/sparePart {
			add = 0
		}
		r.free -= add
		p.rate += add
		out = l.give(now, p, min(p.share, p.rate), l.carry(add), false, out)
	}
	return out
}

// carry takes from the pool the level that comes with a growth of rate: no more than the burst that belongs to it.
func (l *Ledger) carry(add int64) int64 {
	n := min(l.pool, l.whole.burstOf(add))
	l.pool -= n
	return n
}

// give lists a grant and adds it to those that are to be sent.
func (l *Ledger) give(now int64, p *peer, rate, tokens int64, ack bool, out []Push) []Push {
	p.version++
	units, floor := l.capFor(p), min(l.floorOf(p), rate)
	if l.quota.windowed() {
		floor = min(floor, units)
	}
	end := p.seen + l.params.outlast(int64(l.params.Lease))
	p.keepFloor(now, l.memory(), floor, end+l.params.outlast(int64(l.params.Forget)))
	p.list(hold{p.version, rate, units, tokens, now, end})
	p.target, p.sentAt, p.due = rate, now, false
	return append(out, Push{p.name, p.incarnation, Grant{
		Key: l.key, Version: p.version, Number: p.number, Lease: int64(l.params.Lease), Forget: int64(l.params.Forget),
		Rate: rate, Burst: l.whole.burstOf(rate), Cap: units, Floor: floor, Tokens: tokens, Ack: ack, Tight: l.round.caps.tight,
	}})
}

// close fits what is left of the pool under the burst that is left, and notes how fast it fills.
func (l *Ledger) close(now int64) {
	r := &l.round
	r.sum = 0
	for _, p := range l.peers {
		r.sum += p.rateBound(now)
	}
	l.inflow = max(r.limit-r.sum, 0)
	l.clampPool()
	l.pending = false
}
