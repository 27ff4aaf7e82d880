// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"slices"
	"time"
)

// A Lender is the controller's side of a small quota, one of which a node's fair share is less than about a call per report:
// it keeps the one bucket, and the one ring, and lends the tokens of whole calls on demand. It is not safe for concurrent
// use.
//
// What may still be spent is the level and what is lent, never more than the burst together, for the refill stops at
// burst - lent. So a loan moves tokens, a return moves them back, and use or loss takes them away: the sum rises at the rate
// of the quota at most. A loan that is not heard of again is struck off at its end, and not credited: it may have been used.
type Lender struct {
	key    string
	quota  Quota
	whole  Quota // as it was at first
	params Params
	closed int64 // until then nothing is lent: loans of an earlier controller may be out

	at    int64
	level int64 // units
	rest  int64 // of a unit, in window-ths
	lent  int64
	ring  ring // of what has been used, or may have been; by when it was heard of

	loans map[loanKey]*loan
	queue []*loan
	ends  []*loan        // lent and not over, by end
	open  map[string]int // loans of each node that are not over

	Struck int64 // units that were lost, in sum
}

type loanKey struct {
	node            string
	incarnation, id uint64
}

type loan struct {
	loanKey
	units    int64
	deadline int64 // of the call, less the way back
	end      int64 // by our clock, later than the node's
	lent     bool
	over     bool
	repeat   bool
}

// NewLender makes the lender of a controller that starts now. If it is not the first, it lends nothing until all that an
// earlier one may have lent is over, and has left the window; nor does it save up before that, for the quota's own bucket
// may have been full when those loans were used.
func NewLender(now int64, key string, q Quota, p Params, first bool) *Lender {
	l := &Lender{key: key, quota: q, whole: q, params: p, at: now, ring: newRing(now, q.Window, q.Memory), loans: map[loanKey]*loan{}, open: map[string]int{}}
	if first {
		l.level = q.Burst
	} else {
		l.closed = now + p.outlast(p.loanTerm())
		l.at = l.closed
		if q.windowed() {
			l.closed += p.outlast(q.Memory)
		}
	}
	return l
}

// SetLimit changes the limit; the burst stays the same number of seconds. What is lent stays lent.
func (l *Lender) SetLimit(now, limit int64) {
	l.advance(now)
	l.quota.Limit, l.quota.Burst = limit, max(l.whole.burstOf(limit), min(limit, 1))
	l.advance(now)
}

// Empty says whether nothing is lent, nor asked for, nor has been within a window.
func (l *Lender) Empty(now int64) bool {
	l.advance(now)
	return len(l.loans) == 0 && l.ring.sum == 0
}

// Lent is how many units are lent.
func (l *Lender) Lent() int64 { return l.lent }

// Hear takes in what a node says.
func (l *Lender) Hear(now int64, m *Asks) {
	l.advance(now)
	for _, d := range m.Done {
		if e := l.loans[loanKey{m.Node, m.Incarnation, d.ID}]; e != nil && e.lent && !e.over {
			l.finish(e, !d.Returned)
		}
	}
	for _, a := range m.Asks {
		l.ask(now, loanKey{m.Node, m.Incarnation, a.ID}, a)
	}
}

func (l *Lender) ask(now int64, k loanKey, a Ask) {
	if e := l.loans[k]; e != nil {
		e.repeat = e.lent && !e.over // the answer was lost: the same tokens again, and no more time to use them
		return
	}
	if a.Units <= 0 || a.Units > l.quota.Burst || l.open[k.node] >= maxOpen {
		return
	}
	l.open[k.node]++
	early := min(a.Patience/2, int64(time.Second))
	e := &loan{loanKey: k, units: a.Units, deadline: now + a.Patience - early, end: now + l.params.outlast(l.params.loanTerm())}
	l.loans[k] = e
	l.queue = append(l.queue, e)
	at, _ := slices.BinarySearchFunc(l.ends, e, func(a, b *loan) int { return cmp.Compare(a.end, b.end) })
	l.ends = slices.Insert(l.ends, at, e)
}

// maxOpen bounds the loans of one node that are not over. An honest one has no more than maxAsks, and some whose end is on the way.
const maxOpen = 4 * maxAsks

// close ends a loan.
func (l *Lender) close(e *loan) {
	e.over, e.repeat = true, false
	if l.open[e.node]--; l.open[e.node] <= 0 {
		delete(l.open, e.node)
	}
}

// finish ends a loan: used, or back.
func (l *Lender) finish(e *loan, used bool) {
	l.close(e)
	l.lent -= e.units
	if used {
		l.ring.add(l.at, e.units)
		return
	}
	l.level = min(l.quota.Burst-l.lent, l.level+e.units)
}

// advance refills the level, and strikes off the loans that have ended.
func (l *Lender) advance(now int64) {
	if now > l.at {
		dt := now - l.at
		dt -= (dt + clockError - 1) / clockError
		units, rest := mulAddDiv(l.quota.Limit, dt, l.rest, l.quota.Window)
		l.level, l.rest, l.at = l.level+units, rest, now
	}
	if most := l.quota.Burst - l.lent; l.level >= most {
		l.level, l.rest = most, 0
	}
	l.ring.advance(l.at)
	for len(l.ends) > 0 && l.ends[0].end <= now {
		e := l.ends[0]
		l.ends = l.ends[1:]
		if e.lent && !e.over {
			l.Struck += e.units
			l.finish(e, true)
		}
		if !e.over {
			l.close(e)
		}
		delete(l.loans, e.loanKey)
	}
}
