// SPDX-License-Identifier: Apache-2.0

package fleet

import "time"

// A Loan is tokens that are to be sent to a node.
type Loan struct {
	Node string
	Lent
}

// Serve lends what there is, first come first served, and gives what is to be sent, in one message for each node.
func (l *Lender) Serve(now int64) (out []Loan) {
	l.advance(now)
	for len(l.queue) > 0 {
		e := l.queue[0]
		if dead := e.over || now > e.deadline; !dead && !l.lend(now, e) {
			break
		}
		l.queue = l.queue[1:]
	}
	for _, e := range l.ends {
		if e.repeat {
			e.repeat = false
			m := l.message(&out, e)
			m.IDs = append(m.IDs, e.id)
		}
	}
	return out
}

// message gives the message to the life of a node that asked for a loan.
func (l *Lender) message(out *[]Loan, e *loan) *Lent {
	for i := range *out {
		if m := &(*out)[i]; m.Node == e.node && m.Incarnation == e.incarnation {
			return &m.Lent
		}
	}
	*out = append(*out, Loan{e.node, Lent{Incarnation: e.incarnation, Key: l.key, Term: l.params.loanTerm()}})
	return &(*out)[len(*out)-1].Lent
}

func (l *Lender) lend(now int64, e *loan) bool {
	if !l.may(now, e) {
		return false
	}
	l.level -= e.units
	l.lent += e.units
	e.lent, e.repeat = true, true
	return true
}

// may says whether a loan can be lent.
func (l *Lender) may(now int64, e *loan) bool {
	return now >= l.closed && l.level >= e.units && (!l.quota.windowed() || l.lent+l.ring.sum+e.units <= l.quota.Limit)
}

// Next is when to call Serve again, in ns, if nothing is heard before.
func (l *Lender) Next() int64 {
	beat := l.at + int64(l.params.Beat)
	switch {
	case len(l.queue) == 0:
		return beat
	case l.may(l.at, l.queue[0]): // it was asked for since
		return l.at
	case l.level >= l.queue[0].units:
		return beat
	}
	wait, _ := mulDiv(l.queue[0].units-l.level, l.quota.Window, l.quota.Limit)
	return min(beat, max(l.at+wait, l.at+int64(time.Millisecond)))
}
