// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"strings"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// The next controller must know which nodes keep a floor without a lease, or it has to keep back all floors that there may be
// until they are forgotten: a tenth of each limit for an hour. So seats are stored, for the limits of the policy itself; those
// of tenants and users are too many, and each of little worth.

const seatsRecord = "seats/"

func keepsSeats(q *quota) bool {
	return (q.name.Tier == policy.TierProvider || q.name.Tier == policy.TierEnvironment) && q.shared.Floors >= q.shared.Nodes
}

// resume tells a new ledger which nodes may have floors of an earlier controller, if that is known.
func (c *core) resume(q *quota, l *fleet.Ledger) {
	if !c.whole || c.first || !keepsSeats(q) {
		return
	}
	var names []string
	if b := c.records[seatsRecord+q.key]; len(b) > 0 {
		names = strings.Split(string(b), "\x00")
	}
	l.Resume(names)
}

// keepSeats has the store told of seats that are new. Nobody else has to be told of those that are free again: a seat too many
// is kept back in vain, no more.
func (c *core) keepSeats(q *quota) {
	if !keepsSeats(q) {
		return
	}
	names := q.ledger.Seats()
	if !slices.ContainsFunc(names, func(n string) bool { return !q.seats[n] }) {
		return
	}
	c.dirty[seatsRecord+q.key] = []byte(strings.Join(names, "\x00"))
	c.saved = append(c.saved, func() {
		q.seats = make(map[string]bool, len(names))
		for _, n := range names {
			q.seats[n] = true
		}
	})
}

// deliver puts a grant into its node's document: one that brings a floor only when the store knows of the seat.
func (c *core) deliver(q *quota, p *fleet.Push) {
	n, g := c.nodes[p.Node], p.Grant
	if n == nil || n.incarnation != p.Incarnation {
		return
	}
	if g.Floor == 0 || !keepsSeats(q) || q.seats[p.Node] {
		n.grant(c.now, &g)
		return
	}
	c.saved = append(c.saved, func() {
		if n.incarnation == p.Incarnation {
			n.grant(c.now, &g)
		}
	})
}
