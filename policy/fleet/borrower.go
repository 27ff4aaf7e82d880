// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"time"
)

// A Borrower is a node's side of a small quota: calls that find no token wait while it asks for one. It is not safe for
// concurrent use; times are ns of one clock of the node.
type Borrower struct {
	node        string
	incarnation uint64
	key         string
	params      Params
	last        uint64 // id of the last ask, and number of the last call

	calls []waiting
	asks  []asked
	held  []held
	done  []said
}

// A waiting call, in the order in which they came.
type waiting struct {
	call     uint64
	units    int64
	deadline int64
}

// asked is an ask without an answer so far.
type asked struct {
	id    uint64
	units int64
	first int64 // when it was first sent; 0: not yet
	sent  int64 // when it was last sent
	end   int64 // when the call that it was for leaves
}

// held is a token that no call waited for when it came.
type held struct {
	id    uint64
	units int64
	until int64
}

type said struct {
	Done
	times int // how often it is still to be sent
}

// with is the message with what is still to be said in it, which is said once less from here on; nil if there is nothing in it.
func (m *Asks) with(done *[]said) *Asks {
	for i := range *done {
		m.Done = append(m.Done, (*done)[i].Done)
		(*done)[i].times--
	}
	*done = slices.DeleteFunc(*done, func(s said) bool { return s.times <= 0 })
	if len(m.Asks)+len(m.Done) == 0 {
		return nil
	}
	return m
}

const (
	askAgain = int64(time.Second) // an ask without an answer is repeated
	holdFor  = int64(time.Second) // a token without a call is kept for the next
	sayTwice = 2                  // a return is sent twice; a use once, for the end of the loan covers its loss
)

// NewBorrower makes a borrower that holds nothing.
func NewBorrower(node string, incarnation uint64, key string, p Params) *Borrower {
	return &Borrower{node: node, incarnation: incarnation, key: key, params: p}
}

// Want says that a call needs units and would wait for patience ns, of which no more than Params.Patience count. It is admitted at once if a token is at hand; otherwise
// call is what [Borrower.Take] will admit it by.
func (b *Borrower) Want(now, units, patience int64) (call uint64, admitted bool) {
	b.drop(now)
	if i := slices.IndexFunc(b.held, func(h held) bool { return h.units == units }); i >= 0 {
		b.say(Done{ID: b.held[i].id}, 1)
		b.held = slices.Delete(b.held, i, i+1)
		return 0, true
	}
	patience = min(patience, int64(b.params.Patience))
	b.last++
	b.calls = append(b.calls, waiting{b.last, units, now + patience})
	b.asks = append(b.asks, asked{id: b.last, units: units, end: now + patience})
	return b.last, false
}

// Leave says that a call waits no longer.
func (b *Borrower) Leave(call uint64) {
	b.calls = slices.DeleteFunc(b.calls, func(w waiting) bool { return w.call == call })
}

// Take takes tokens, and gives the calls that may go. A token that comes twice, or too late, is not there.
func (b *Borrower) Take(now int64, m *Lent) (calls []uint64) {
	b.drop(now)
	if m.Incarnation != b.incarnation || m.Key != b.key {
		return nil
	}
	for _, id := range m.IDs {
		at := slices.IndexFunc(b.asks, func(a asked) bool { return a.id == id && a.first > 0 })
		if at < 0 {
			continue
		}
		a := b.asks[at]
		b.asks = slices.Delete(b.asks, at, at+1)
		if now >= a.first+m.Term {
			continue // the lender may have struck it off, and lent it again
		}
		if i := slices.IndexFunc(b.calls, func(w waiting) bool { return w.units == a.units }); i >= 0 {
			calls = append(calls, b.calls[i].call)
			b.calls = slices.Delete(b.calls, i, i+1)
			b.say(Done{ID: id}, 1)
			continue
		}
		b.held = append(b.held, held{id, a.units, min(a.first+m.Term, now+holdFor)})
	}
	return calls
}

// Message is what is to be sent now; nil for nothing. Call it after Want and Take, and every 100 ms.
func (b *Borrower) Message(now int64) *Asks {
	b.drop(now)
	m := &Asks{Node: b.node, Incarnation: b.incarnation, Key: b.key}
	for i, open := 0, 0; i < len(b.asks) && open < len(b.calls); i++ {
		a := &b.asks[i]
		open++
		if a.first > 0 && now-a.sent < askAgain {
			continue
		}
		if a.first == 0 {
			a.first = now
		}
		a.sent = now
		m.Asks = append(m.Asks, Ask{a.id, a.units, max(a.end-now, 0)})
	}
	return m.with(&b.done)
}

// drop drops calls that have left, asks that no answer can come to any more, and gives back tokens that nobody needs.
func (b *Borrower) drop(now int64) {
	b.calls = slices.DeleteFunc(b.calls, func(w waiting) bool { return now > w.deadline })
	b.asks = slices.DeleteFunc(b.asks, func(a asked) bool { return now > a.end+b.params.loanTerm() || a.first == 0 && now > a.end })
	b.held = slices.DeleteFunc(b.held, func(h held) bool {
		if now < h.until {
			return false
		}
		b.say(Done{ID: h.id, Returned: true}, sayTwice)
		return true
	})
}

func (b *Borrower) say(d Done, times int) { b.done = append(b.done, said{d, times}) }
