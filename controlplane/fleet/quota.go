// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// A quota is one that somebody uses. It has one of ledger, lender and stock.
type quota struct {
	name   fleet.Name
	key    string // the bytes of the name
	label  string
	shared fleet.Quota // as the policy says, before what providers answer
	limit  int64       // in force

	ledger *fleet.Ledger
	lender *fleet.Lender
	stock  *fleet.Stock

	adapt *adapted // of a provider's limit that follows what it answers; nil: none

	off    bool  // the policy has no such limit any more: what is out runs out, and nothing is granted
	offAt  int64 // since when
	used   int64 // when a node last said anything of it
	ends   int64 // of a stock: when it is over; 0: never
	gone   int64 // of a stock: what the store says has been given, never less than that
	kept   bool  // the store has a record of it
	due    int64 // when it has to be looked at again
	at     int   // place in the schedule
	named  bool  // the policy names whose it is
	told   bool  // a node has said what happens at it; in sum:
	denied int64 // calls
	sent   int64 // units

	answered, rejected int64 // calls

	queued  map[string]int64
	learned *Learned        // what the provider tells of the limit; nil: nothing so far
	seats   map[string]bool // nodes that the store knows to have a floor
}

// Of a limit with so few calls a second for each node, tokens are lent one call at a time: a share would be less than a call.
// Fewer nodes than fewNodes may become that many at any time. Tokens of language models are never lent so, for nobody knows
// how many of them a call needs: for these a share owes what is too large for it.
const (
	callsPerNode = 1
	fewNodes     = 4
)

func byToken(m *policy.Meter, nodes int) bool {
	if m.Dimension.Unit() != policy.Requests {
		return false
	}
	perSecond := float64(m.Limit()) / m.Window().Seconds()
	return perSecond < callsPerNode*float64(max(nodes, fewNodes))
}

// windowEnd is the end of a stock by our monotonic clock.
func (c *core) windowEnd(n fleet.Name, m *policy.Meter) int64 {
	if n.Period > 0 {
		return c.now + int64(time.Unix(n.Period, 0).Sub(c.wall)) + 2*int64(clockSkew)
	}
	return c.now + int64(m.Window())
}

// newQuota makes the quota that a node has named; nil if the policy shares no such limit, or if what nodes hold of another one
// in its place is not over.
func (c *core) newQuota(n fleet.Name, key string) *quota {
	e, m := c.dir.find(n)
	if m == nil || len(c.quotas) >= maxQuotas || m.Kind == policy.Fixed && !inPeriod(m, n, c.wall) || c.inTheWay(n) {
		return nil
	}
	q := &quota{
		name: n, key: key, label: label(n, e), named: e.Key != 0, shared: c.dir.quotaOf(e, m), limit: m.Limit(), used: c.now, at: -1, queued: map[string]int64{},
	}
	switch {
	case m.Kind == policy.Fixed || m.Kind == policy.Stock:
		q.ends = c.windowEnd(n, m)
		q.gone, q.kept = c.load(stockRecord+key, 0, q.limit)
		q.stock = fleet.NewStock(key, q.limit-q.gone, c.params)
	case byToken(m, c.connected()):
		// Both are as if they had been there since the controller began: whoever held anything would have said so.
		q.lender = c.newLender(q)
	default:
		q.ledger = c.newLedger(q)
	}
	c.startAdapting(q, e)
	c.quotas[key], c.taken[placeOf(n)] = q, q
	return q
}

// newLedger makes a ledger of which nothing is out but what an earlier controller may have lent. Its pool has filled since.
func (c *core) newLedger(q *quota) *fleet.Ledger {
	l := fleet.NewLedger(c.start, q.key, q.shared, c.params, c.epoch, c.first)
	c.resume(q, l)
	l.Rebalance(max(c.now-q.shared.Window, c.start), nil)
	l.Rebalance(c.now, nil)
	if c.census.over {
		l.EndLearning(c.now)
	}
	return l
}

// maxQuotas bounds how many quotas there are: callers who can be made up must not fill the memory.
const maxQuotas = 200_000

// A place is a meter of a key: one quota at a time, whatever its window.
type place struct {
	keyOf
	dimension policy.Dimension
	sub       uint8
}

func placeOf(n fleet.Name) place { return place{keyOf{n.Tier, n.Key}, n.Dimension, n.Sub} }

// inTheWay says whether another quota is in the place of this one, and not over. Fixed windows follow one another; and of a
// stock that the policy has no more nothing can be used when its chunks are over, but what was used stays known, should the
// policy have it again.
func (c *core) inTheWay(n fleet.Name) bool {
	q := c.taken[placeOf(n)]
	switch {
	case q == nil || n.Period > 0 && q.name.Period > 0:
		return false
	case q.stock != nil && q.off:
		return c.now-q.offAt < chunkTerm
	}
	return true
}

// review fits a quota to a new policy. A limit that is lower or higher applies through what lends it; one of another shape
// has to wait until what is out of this one is over.
func (c *core) review(q *quota) {
	e, m := c.dir.find(q.name)
	if m == nil {
		c.end(q)
		return
	}
	next := c.dir.quotaOf(e, m)
	if stock := m.Kind == policy.Fixed || m.Kind == policy.Stock; stock != (q.stock != nil) || !sameShape(&q.shared, &next) {
		c.end(q)
		return
	}
	q.off = false
	q.label, q.named = label(q.name, e), e.Key != 0
	if q.stock != nil && next.Limit != q.shared.Limit {
		q.stock.Add(next.Limit - q.shared.Limit)
		c.keepStock(q)
	}
	q.shared.Limit = next.Limit
	c.startAdapting(q, e)
	c.setLimit(q)
}

// end takes back what is out of a quota, as far as nodes hear of it.
func (c *core) end(q *quota) {
	if !q.off {
		q.off, q.offAt = true, c.now
	}
	q.adapt = nil
	c.setLimit(q)
}

// chunkTerm is when chunks that have been given are over by any clock: their own minute, and some.
const chunkTerm = int64(61 * time.Second)

// sameShape says whether a quota can go on under another policy. Its burst and its floors stay as they were when it was made: what
// nodes hold depends on them.
func sameShape(a, b *fleet.Quota) bool { return a.Window == b.Window && a.Memory == b.Memory }

// setLimit puts the limit in force that follows from the policy and from what the provider has answered.
func (c *core) setLimit(q *quota) {
	limit := q.shared.Limit
	if q.adapt != nil {
		limit = q.adapt.limit(c.now, limit)
	}
	if q.off {
		limit = 0
	}
	if limit == q.limit {
		return
	}
	q.limit = limit
	switch {
	case q.ledger != nil:
		q.ledger.SetLimit(c.now, limit)
	case q.lender != nil:
		q.lender.SetLimit(c.now, limit)
	}
	c.schedule(q)
}

// idle says whether nothing of the quota is out, so that it may be made anew when somebody uses it.
func (c *core) idle(q *quota) bool {
	if q.ends > 0 {
		return c.now >= q.ends
	}
	if rest := max(q.shared.Window, int64(c.params.Lease)); c.now-q.used <= rest+rest/100 {
		return false
	}
	return q.ledger != nil && q.ledger.Empty() || q.lender != nil && q.lender.Empty(c.now)
}
