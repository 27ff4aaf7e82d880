// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"bytes"
	"math"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// Where a document of the controller lies in shared data: the courier (controlplane/translate/courier) lays it there, and then sets
// SharesNew, whose number changes by that.
const (
	SharesName = "fd"
	SharesNew  = "fv"
)

// lookForShares takes the document that lies in shared data, if it is another than the last: each VM of the courier brings it.
func (v *VM) lookForShares() {
	_, brought, ok := v.host.Get(SharesNew)
	if !ok || brought == v.brought {
		return
	}
	v.brought = brought
	document, _, _ := v.host.Get(SharesName)
	if bytes.Equal(document, v.document) {
		return
	}
	v.document = append(v.document[:0], document...) // what the host has lent is gone with the next call
	if err := v.takeShares(v.document); err != nil {
		v.host.Log(Error, "weir: bad shares: "+err.Error())
	}
}

// takeShares takes a document. Every worker does: the member puts into the buckets what it grants, all hear which rates are in force.
func (v *VM) takeShares(document []byte) error {
	rates, err := fleet.DecodeRates(document)
	if err != nil {
		return err
	}
	now := v.host.Now()
	v.eager = now + eagerFor // those that wait have their turn soon
	v.takeRates(rates)
	m := v.member
	if m == nil || now >= m.state.expires {
		return nil
	}
	doc, err := fleet.DecodeToNode(document)
	if err != nil || doc.Shares.Incarnation != m.state.incarnation {
		return err
	}
	m.greet(fleet.Hello{Epoch: doc.Shares.Epoch})
	m.ack = m.node.Take(now, doc.Shares) || m.ack
	for i := range doc.Shares.Grants {
		if q := m.quotas[doc.Shares.Grants[i].Key]; q != nil && q.credit != nil && !q.share.None(now) {
			q.credit = nil
		}
	}
	for i := range doc.Lent {
		m.takeLent(now, &doc.Lent[i])
	}
	for i := range doc.Chunks {
		m.takeChunk(now, &doc.Chunks[i])
	}
	return nil
}

// takeRates notes under which rates of providers' limits calls are sent from now on.
func (v *VM) takeRates(rates []fleet.Rate) {
	epochs := make(map[string]uint32, len(rates))
	same := len(rates) == len(v.epochs)
	for _, r := range rates {
		epochs[r.Key] = r.Epoch
		same = same && v.epochs[r.Key] == r.Epoch
	}
	if !same {
		v.epochs = epochs
		v.rates++
	}
}

func (m *member) takeLent(now int64, l *fleet.Lent) {
	q := m.quotas[l.Key]
	if q == nil || q.share == nil {
		return
	}
	if !q.share.None(now) {
		return // it is shared, and has been since before this was said
	}
	if q.credit == nil {
		m.lend(now, q, 0)
	}
	m.lookAtCredit(now, q)
	units := q.credit.Take(now, l)
	if units == 0 && q.lent {
		return
	}
	until, taken := q.credit.End(), q.taken
	q.each(m.vm, now, func(sm *policy.SharedMeter) bool {
		if taken = q.taken; !q.lent { // what another member has left nobody knows the end of
			sm.Recall(math.MaxInt64)
		}
		if sm.Lend(units, until) || !q.lent {
			taken = sm.Used()
		}
		return true
	})
	q.lent, q.taken = true, taken
}

// dryFor is how long it is believed that a stock has no more to give, before it is asked again.
const dryFor = int64(1e9)

func (m *member) takeChunk(now int64, c *fleet.Chunk) {
	q := m.quotas[c.Key]
	if q == nil || q.drawer == nil {
		return
	}
	until, ok := q.drawer.Until(c)
	if !ok || c.Number <= q.chunk {
		return
	}
	q.chunk = c.Number
	q.each(m.vm, now, func(sm *policy.SharedMeter) bool {
		sm.GiveBack(now)
		dry := int64(0)
		if c.Number == q.asked && c.Given-sm.Used()-sm.Returned() < q.askedFor {
			dry = now + dryFor
		}
		sm.Draw(c.Given, until, dry)
		return true
	})
}
