// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"bytes"
	"math"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// Where a document of the controller lies in shared data: the courier (controlplane/translate/courier) lays it there, and then sets
// SharesNew, whose number changes by that. The member puts into the buckets what it grants, and lays down apart which rates are in
// force, for all workers: they need no more of it.
const (
	SharesName = "fd"
	SharesNew  = "fv"
	ratesName  = "fr"
)

// lookForShares takes the document that lies in shared data, if it is another than the last: each VM of the courier brings it.
func (m *member) lookForShares(now int64) {
	_, brought, ok := m.vm.host.Get(SharesNew)
	if !ok || brought == m.brought {
		return
	}
	m.brought = brought
	document, _, _ := m.vm.host.Get(SharesName)
	if bytes.Equal(document, m.document) {
		return
	}
	m.document = append(m.document[:0], document...) // what the host has lent is gone with the next call
	if err := m.takeShares(now, m.document); err != nil {
		m.vm.host.Log(Error, "weir: bad shares: "+err.Error())
	}
}

func (m *member) takeShares(now int64, document []byte) error {
	doc, err := fleet.DecodeToNode(document)
	if err != nil {
		return err
	}
	m.vm.eager = now + eagerFor
	if rates := (&fleet.ToNode{Rates: doc.Rates}).Encode(); !bytes.Equal(rates, m.rates) {
		m.rates = rates
		m.vm.host.Set(ratesName, rates, 0)
		m.vm.lookForRates()
	}
	if doc.Shares.Incarnation != m.state.incarnation {
		return nil
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

// lookForRates notes under which rates of providers' limits calls are sent from now on.
func (v *VM) lookForRates() {
	document, laid, ok := v.host.Get(ratesName)
	if !ok || laid == v.ratesLaid {
		return
	}
	v.ratesLaid = laid
	doc, err := fleet.DecodeToNode(document)
	if err != nil {
		return // no member has laid that down
	}
	epochs := make(map[string]uint32, len(doc.Rates))
	same := len(doc.Rates) == len(v.epochs)
	for _, r := range doc.Rates {
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
