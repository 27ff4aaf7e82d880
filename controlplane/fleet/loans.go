// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"

	"github.com/weirproxy/weir/policy/fleet"
)

// What is lent call by call is kept before it is sent, so that the next controller need not wait until all that may be out is over,
// and a window longer.

const loansRecord = "loans/"

// newLender makes the lender of a quota that somebody uses. It goes on from what was kept, if that is all there was.
func (c *core) newLender(q *quota) *fleet.Lender {
	l := fleet.NewLender(c.start, q.key, q.shared, c.params, c.first || c.whole)
	if c.first || !c.whole {
		return l
	}
	b, known := c.records[loansRecord+q.key]
	s, ok := fleet.DecodeLenderState(b, c.now-c.wall.UnixNano()+int64(clockSkew))
	if known && !ok {
		return fleet.NewLender(c.start, q.key, q.shared, c.params, false)
	}
	q.kept = known
	l.Resume(s)
	return l
}

// keepLoans has the store told of all loans of a quota. Its times are those of the wall clock.
func (c *core) keepLoans(q *quota) {
	c.dirty[loansRecord+q.key] = q.lender.State(c.now).Encode(c.wall.UnixNano() - c.now)
	q.kept = true
}

func (c *core) deliverLoans(loans []fleet.Loan) {
	for _, l := range loans {
		if n := c.nodes[l.Node]; n != nil && n.incarnation == l.Incarnation {
			c.stats.Grants += int64(len(l.IDs))
			n.lend(c.now, l.Lent)
		}
	}
}

// pastLoans says whether a record is one of loans that count no more.
func (c *core) pastLoans(r *Record) bool {
	if !strings.HasPrefix(r.Key, loansRecord) {
		return false
	}
	name, ok := fleet.ParseName(strings.TrimPrefix(r.Key, loansRecord))
	s, read := fleet.DecodeLenderState(r.Value, 0)
	if !ok || !read {
		return false
	}
	last := int64(0)
	for _, lots := range [][]fleet.Lot{s.Out, s.Used} {
		for _, l := range lots {
			last = max(last, l.At)
		}
	}
	return last+2*name.Window*1e6+2*int64(clockSkew) < c.wall.UnixNano()
}
