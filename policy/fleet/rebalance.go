// SPDX-License-Identifier: Apache-2.0

package fleet

import "slices"

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
	grown  int64 // it is to get so much more, with the answer
	caps   peerCaps
}

// lentPart: all but this part of what is left over is lent out, half of it evenly, half by demand. takePart: so much more than
// is free must be lacked before shares are taken at once.
const (
	lentPart = 10
	takePart = 500
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
			if p.seated {
				l.seats--
			}
		}
		return gone
	})
}

// count adds up what nodes may be spending. While the ledger learns, nothing counts but what nodes of this epoch brought:
// they move it among themselves, and all others hold no more than the controller before allowed for.
func (l *Ledger) count(now int64) {
	r := &l.round
	*r = round{limit: l.quota.Limit}
	learning := now < l.learnRates
	if learning {
		r.limit = 0
	}
	for _, p := range l.peers {
		p.expire(now, l.memory())
		if learning {
			r.limit += p.rateCredit
		}
		l.seat(now, p, false)
		l.countPeer(now, p)
	}
	if now < l.unheardRates && !learning {
		r.limit -= l.unheard()
	}
	l.countCaps(now)
	r.free = r.limit - r.sum
}

func (l *Ledger) countPeer(now int64, p *peer) {
	r := &l.round
	p.grown = 0
	p.rate, p.locked = p.rateBound(now), p.incarnation == 0 || now-p.seen > int64(l.params.Silent)
	if p.incarnation == 0 && now < l.learnRates {
		p.rate = 0 // as all that is not heard of
	}
	r.sum += p.rate
	if p.locked {
		r.locked += p.rate
		return
	}
	r.live++
	r.demand += max(p.demand, l.floorOf(p))
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
	left := r.limit - r.locked
	l.filler.Fill(left, l.wants, l.x)
	for i, p := range l.peers {
		p.share = l.x[i]
		left -= p.share
		if !p.locked {
			r.lack += max(min(p.share, l.wants[i].Demand)-p.rate, 0)
		}
	}
	r.take = r.lack > r.free+r.limit/takePart
	l.lend(max(left-left/lentPart, 0))
}

// lend adds what is left over to the shares.
func (l *Ledger) lend(units int64) {
	r := &l.round
	for _, p := range l.peers {
		if !p.locked {
			p.share += units/2/r.live + part(units/2, max(p.demand, l.floorOf(p)), max(r.demand, 1))
		}
	}
}

// close fits what is left of the pool under the burst that is left, and notes how fast it fills.
func (l *Ledger) close(now int64) {
	r := &l.round
	r.sum = 0
	for _, p := range l.peers {
		if p.incarnation != 0 || now >= l.learnRates {
			r.sum += p.rateBound(now)
		}
	}
	l.inflow = max(r.limit-r.sum, 0)
	l.clampPool()
	l.pending = false
}
