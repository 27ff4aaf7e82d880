// SPDX-License-Identifier: Apache-2.0

package fleet

import "slices"

// A Credit is a [Borrower] for calls that several workers serve: it knows how many of them wait, not which, and what comes is for
// whoever takes it first. All calls are of one unit. It is not safe for concurrent use; times are ns of one clock of the node.
type Credit struct {
	node        string
	incarnation uint64
	key         string
	params      Params
	last        uint64 // id of the last ask

	asks []asked
	held []token // the oldest first
	done []said
}

// A token is one that nobody is known to have used.
type token struct {
	id    uint64
	until int64 // it goes back if it is not used by then
	end   int64 // it may not be used from then on
}

// NewCredit makes a credit that holds nothing. last must be above the id of every ask of this quota in this life of the node.
func NewCredit(node string, incarnation uint64, key string, p Params, last uint64) *Credit {
	return &Credit{node: node, incarnation: incarnation, key: key, params: p, last: last}
}

// Take takes tokens, and gives how many are new. One that comes twice, or too late, is not there.
func (c *Credit) Take(now int64, m *Lent) (units int64) {
	if m.Incarnation != c.incarnation || m.Key != c.key {
		return 0
	}
	for _, id := range m.IDs {
		at := slices.IndexFunc(c.asks, func(a asked) bool { return a.id == id })
		if at < 0 {
			continue
		}
		end := c.asks[at].first + m.Term
		c.asks = slices.Delete(c.asks, at, at+1)
		if now < end { // else the lender may have struck it off, and lent it again
			c.held = append(c.held, token{id, min(end, now+holdFor), end})
			units++
		}
	}
	return units
}

// End is from when on nothing of what is held may be used.
func (c *Credit) End() int64 {
	end := int64(0)
	for i, h := range c.held {
		if i == 0 || h.end < end {
			end = h.end
		}
	}
	return end
}

// Held is how many units are held, and stale how many of them have been for so long that they should go back.
func (c *Credit) Held(now int64) (units, stale int64) {
	for _, h := range c.held {
		if now >= h.until {
			stale++
		}
	}
	return int64(len(c.held)), stale
}

// Used says that so many units were used, Back that so many are not going to be.
func (c *Credit) Used(units int64) { c.end(units, false, 1) }
func (c *Credit) Back(units int64) { c.end(units, true, sayTwice) }

func (c *Credit) end(units int64, returned bool, times int) {
	n := int(min(units, int64(len(c.held))))
	for _, h := range c.held[:n] {
		c.done = append(c.done, said{Done{ID: h.id, Returned: returned}, times})
	}
	c.held = slices.Delete(c.held, 0, n)
}

// Message is what is to be sent now, when so many calls wait that nothing is at hand for; nil for nothing.
func (c *Credit) Message(now, waiting int64) *Asks {
	c.asks = slices.DeleteFunc(c.asks, func(a asked) bool { return now > a.end+c.params.loanTerm() })
	m := &Asks{Node: c.node, Incarnation: c.incarnation, Key: c.key}
	for i := range c.asks {
		a := &c.asks[i]
		if waiting <= 0 || now >= a.end {
			continue
		}
		if waiting--; now-a.sent >= askAgain { // the ask or the answer may be lost
			a.sent = now
			m.Asks = append(m.Asks, Ask{a.id, a.units, a.end - now})
		}
	}
	for ; waiting > 0 && len(c.asks) < maxAsks; waiting-- {
		c.last++
		c.asks = append(c.asks, asked{id: c.last, units: 1, first: now, sent: now, end: now + int64(c.params.Patience)})
		m.Asks = append(m.Asks, Ask{c.last, 1, int64(c.params.Patience)})
	}
	return m.with(&c.done)
}

// Idle says whether the credit holds nothing, and expects nothing.
func (c *Credit) Idle() bool { return len(c.asks)+len(c.held)+len(c.done) == 0 }

// maxAsks bounds the open asks for one quota.
const maxAsks = 256
