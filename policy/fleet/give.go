// SPDX-License-Identifier: Apache-2.0

package fleet

import "time"

// What is worth a message of its own, as parts of a node's rate and of the average rate.
const (
	pushPart    = 10 // a change by a tenth of the node's rate, and
	pushAverage = 10 // by a tenth of limit/nodes to shrink, by half of that to grow
	ackPart     = 50 // an answer that takes away this part of the rate asks for an acknowledgement
	sparePart   = 50 // with so little free while somebody lacks, answers carry no more than is lacked

	shrinkGap = 800 * time.Millisecond // between two demands to shrink at once
	growGap   = 500 * time.Millisecond // between two grants that add little
	growSoon  = 50 * time.Millisecond  // between two grants that add much
)

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
			if p.due {
				p.grown = add
				continue
			}
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

// answer renews or raises the shares of those whose report has had no answer yet, and lends them what is left over.
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
		out = l.give(now, p, min(p.share, p.rate), l.carry(add+p.grown), false, out)
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
