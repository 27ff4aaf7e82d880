// SPDX-License-Identifier: Apache-2.0

package fleet

import "github.com/weirproxy/weir/policy/fleet"

// report takes in what a node says. false: it has to be told hello.
func (c *core) report(m *fleet.FromNode) (heard bool) {
	c.stats.Reports++
	n := c.node(m)
	if n == nil || !n.numbers.first(m.Number) {
		c.stats.Twice++
		return true
	}
	n.seen = c.now
	for i := range m.Seen {
		c.seen(n, &m.Seen[i])
	}
	for i := range m.Denials {
		c.denied(&m.Denials[i])
	}
	for i := range m.Waits {
		c.waits(n, &m.Waits[i])
	}
	for _, l := range m.Learned {
		if q := c.quota(l.Key); q != nil {
			q.learned = &Learned{Limit: l.Limit, External: l.External, Node: n.id, At: c.wall}
			c.toldLimit(q, l.Limit)
		}
	}
	for i := range m.Asks {
		c.asks(n, &m.Asks[i])
	}
	for i := range m.Draws {
		c.draw(n, &m.Draws[i])
	}
	if m.Report == nil {
		return true
	}
	return c.holdings(n, m.Report)
}

// node gives the entry of a node; nil for a message of a life that is over, or of one too many.
func (c *core) node(m *fleet.FromNode) *node {
	n := c.nodes[m.Node]
	if (n == nil || m.Incarnation > n.incarnation) && !c.mayBegin(m) {
		return nil
	}
	if n == nil {
		n = &node{id: m.Node, outbox: &c.outbox}
		n.life(m.Incarnation)
		c.nodes[m.Node] = n
		c.register(n)
	}
	switch {
	case m.Incarnation < n.incarnation:
		return nil
	case m.Incarnation > n.incarnation:
		n.life(m.Incarnation)
		c.register(n)
	}
	return n
}

func (c *core) holdings(n *node, r *fleet.Report) (heard bool) {
	if r.Epoch != c.epoch {
		if r.Epoch > c.epoch {
			c.log.Error("a node has heard of a newer controller than this one", "node", n.id, "epoch", r.Epoch, "own", c.epoch)
			return true
		}
		c.stats.Hellos++
		return false
	}
	all := r.All
	for i := range r.Holdings {
		h := &r.Holdings[i]
		n.acknowledged(h)
		q := c.quota(h.Key)
		switch {
		case q == nil:
			all = all && h.Rate+h.Cap+h.Remembered == 0 // of a limit that may come to be another's
		case q.lender != nil:
			q.used = c.now
			n.byToken(c.now, h.Key, n.incarnation)
		case q.ledger != nil:
			q.used = c.now
			q.ledger.Report(c.now, r, h)
			c.schedule(q)
		}
	}
	if all {
		c.toldAll(n)
	}
	return true
}

// quota finds a quota, or makes it if the policy has it.
func (c *core) quota(key string) *quota {
	if q := c.quotas[key]; q != nil {
		return q
	}
	name, ok := fleet.ParseName(key)
	if !ok || c.dir == nil {
		return nil
	}
	return c.newQuota(name, key)
}

func (c *core) asks(n *node, a *fleet.Asks) {
	q := c.quota(a.Key)
	if q == nil || q.lender == nil {
		return
	}
	q.used = c.now
	if q.off {
		a.Asks = nil // what was lent may still come back
	} else {
		n.byToken(c.now, a.Key, n.incarnation)
	}
	q.lender.Hear(c.now, a)
	c.schedule(q)
}

func (c *core) draw(n *node, d *fleet.Draw) {
	q := c.quota(d.Key)
	if q == nil || q.stock == nil || q.off {
		return
	}
	q.used = c.now
	if chunk := q.stock.Draw(c.now, d); chunk != nil {
		c.saved = append(c.saved, func() {
			if n.incarnation == chunk.Incarnation {
				n.chunk(c.now, *chunk)
			}
		})
	}
	c.keepStock(q)
	c.schedule(q)
}
