// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"container/heap"
	"time"
)

// tick does what is due, and gives the documents to send, by node. If the store fails, nothing of a stock is given that it does
// not know of, and no floor; shares of Envoys that it knows go on otherwise, for
// they do not outlive the controller.
func (c *core) tick() (documents map[string][]byte, err error) {
	for len(c.plan) > 0 && c.plan[0].due <= c.now {
		c.serve(c.plan[0])
	}
	c.sweep()
	if err = c.save(); err == nil {
		for _, f := range c.saved {
			f()
		}
		clear(c.saved)
		c.saved = c.saved[:0]
	}
	return c.flush(), err
}

// flush gives the documents of all nodes that wait for one, and of others that have waited for company.
func (c *core) flush() map[string][]byte {
	documents := c.greetings()
	later := c.outbox[:0]
	c.flushAt = 0
	for _, n := range c.outbox {
		if c.now < n.due || !n.kept {
			later = append(later, n)
			if n.kept && (c.flushAt == 0 || n.due < c.flushAt) {
				c.flushAt = n.due
			}
			continue
		}
		if b := n.document(c.now, c.epoch); b != nil && c.nodes[n.id] == n {
			documents[n.id] = b
			c.stats.Pushes++
			c.stats.Bytes += int64(len(b))
		}
	}
	clear(c.outbox[len(later):])
	c.outbox = later
	return documents
}

func (c *core) serve(q *quota) {
	switch {
	case q.ledger != nil:
		c.adaptTick(q)
		c.pushes = q.ledger.Rebalance(c.now, c.pushes[:0])
		c.stats.Grants += int64(len(c.pushes))
		c.keepSeats(q)
		for _, p := range c.pushes {
			c.deliver(q, &p)
		}
	case q.lender != nil:
		c.adaptTick(q)
		if loans := q.lender.Serve(c.now); len(loans) > 0 {
			c.keepLoans(q)
			c.saved = append(c.saved, func() { c.deliverLoans(loans) })
		}
	}
	c.schedule(q)
}

const sweepEvery = int64(500 * time.Millisecond)

// sweep drops what is over.
func (c *core) sweep() {
	if c.now-c.swept < sweepEvery {
		return
	}
	c.swept = c.now
	for key, q := range c.quotas {
		if c.idle(q) {
			c.drop(key, q)
		}
	}
	for id, n := range c.nodes {
		if c.now-n.seen > forgetNode {
			delete(c.nodes, id)
		}
	}
	c.sweepDenials()
	c.sweepCensus()
}

// forgetNode is how long a node is remembered that says nothing. Nothing depends on it but which messages came twice.
const forgetNode = int64(10 * time.Minute)

func (c *core) drop(key string, q *quota) {
	delete(c.quotas, key)
	if p := placeOf(q.name); c.taken[p] == q {
		delete(c.taken, p)
	}
	if q.at >= 0 {
		heap.Remove(&c.plan, q.at)
	}
	if q.kept && q.stock != nil {
		c.dirty[stockRecord+key] = nil
	} else if q.kept {
		c.dirty[loansRecord+key] = nil
	}
	for _, n := range c.nodes {
		n.forget(key)
	}
}

// next is when tick has to be called again, in ns.
func (c *core) next() int64 {
	next := c.swept + sweepEvery
	if c.flushAt > 0 {
		next = min(next, c.flushAt)
	}
	if len(c.plan) > 0 {
		next = min(next, c.plan[0].due)
	}
	return next
}
