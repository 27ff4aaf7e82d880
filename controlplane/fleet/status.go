// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"encoding/base64"
	"slices"
	"time"

	"github.com/weirproxy/weir/policy"
)

// Status is what there is to see.
type Status struct {
	Epoch    uint64   `json:"epoch"`
	Learning bool     `json:"learning"` // an earlier controller's leases may still run
	Store    string   `json:"store_error,omitempty"`
	Nodes    int      `json:"nodes"`        // that report
	Total    int      `json:"quotas_total"` // Quotas has no more than maxShown
	Quotas   []Quota  `json:"quotas"`
	Changes  []Change `json:"changes"` // of providers' rates, the newest last
	Counters Counters `json:"counters"`
}

// A Quota is one that somebody uses.
type Quota struct {
	ID        string   `json:"id"` // the same as long as somebody uses it
	Quota     string   `json:"quota"`
	Tier      string   `json:"tier"`
	Named     bool     `json:"named"` // by the policy; others are shown by the fingerprint of their key
	Dimension string   `json:"dimension"`
	Unit      string   `json:"unit"` // of all amounts
	Window    string   `json:"window"`
	Kind      string   `json:"kind"`   // shares, tokens or stock
	Policy    int64    `json:"policy"` // the limit that the policy says
	Limit     int64    `json:"limit"`  // in force
	Rate      float64  `json:"rate,omitempty"`
	Granted   int64    `json:"granted"` // units per window that nodes may spend; of a stock, units that they have
	Left      *int64   `json:"left,omitempty"`
	Used      *int64   `json:"used,omitempty"` // units of the window that count as spent; absent: nodes do not say
	Seen      bool     `json:"seen"`           // nodes say what happens at it; if not, the next five are not known
	Denied    int64    `json:"denied"`         // calls
	Queued    int64    `json:"queued"`         // calls
	Sent      int64    `json:"sent"`           // units
	Answered  int64    `json:"answered"`       // calls
	Rejected  int64    `json:"rejected"`       // calls that the provider refused for this limit
	Off       bool     `json:"off,omitempty"`
	Learned   *Learned `json:"learned,omitempty"`
	Holders   []Holder `json:"holders,omitempty"`
}

// Learned is what a provider tells of a limit in its headers, or what was found by trying.
type Learned struct {
	Limit    int64     `json:"limit"`
	Found    bool      `json:"found,omitempty"` // by trying
	External int64     `json:"external"`        // units that others use of it
	Node     string    `json:"node"`            // that heard it
	At       time.Time `json:"at"`
}

// A Holder is what a node may spend of a quota.
type Holder struct {
	Node   string `json:"node"`
	Demand int64  `json:"demand,omitempty"` // units per window
	Share  int64  `json:"share"`            // units per window it may spend; of a stock, units it was given
	Window int64  `json:"window,omitempty"` // most units of a window that count as its own
	Used   int64  `json:"used,omitempty"`   // of a stock; else units of the window that count as spent
	Lease  int64  `json:"lease_ms,omitempty"`
	Silent bool   `json:"silent,omitempty"`
	Behind bool   `json:"behind,omitempty"` // it has not acknowledged its newest grant
}

var units = [...]string{
	policy.Requests: "requests", policy.Tokens: "tokens", policy.InputTokens: "input tokens", policy.OutputTokens: "output tokens",
	policy.Retries: "retries", policy.Spend: "millionths of a dollar",
}

// maxShown bounds the quotas of a status.
const maxShown = 1000

// status gives the quotas by their names, or if most is above 0 the busiest, no more than so many of them.
func (c *core) status(most int) Status {
	s := Status{
		Epoch: c.epoch, Learning: !c.first && !c.census.over && c.now < c.start+int64(c.params.Lease)+int64(time.Second), Nodes: len(c.nodes),
		Total: len(c.quotas), Quotas: []Quota{}, Changes: append([]Change{}, c.changes...), Counters: c.stats,
	}
	all := make([]*quota, 0, len(c.quotas))
	for _, q := range c.quotas {
		all = append(all, q)
	}
	if most > 0 {
		all = busiest(all, most)
	}
	slices.SortFunc(all, func(a, b *quota) int {
		return cmp.Or(-cmp.Compare(a.name.Tier, b.name.Tier), cmp.Compare(a.label, b.label), cmp.Compare(a.name.Dimension, b.name.Dimension), cmp.Compare(a.key, b.key))
	})
	for _, q := range all[:min(len(all), maxShown)] {
		s.Quotas = append(s.Quotas, c.show(q))
	}
	return s
}

// busiest picks those that people look for first: providers' limits, and where somebody waits or was denied.
func busiest(all []*quota, most int) []*quota {
	if len(all) <= most {
		return all
	}
	busy := func(q *quota) int64 {
		n := q.denied + 1000*int64(len(q.queued))
		if q.name.Tier == policy.TierProvider || q.name.Tier == policy.TierEnvironment {
			n += 1 << 60
		}
		return n
	}
	slices.SortFunc(all, func(a, b *quota) int { return cmp.Or(cmp.Compare(busy(b), busy(a)), cmp.Compare(a.key, b.key)) })
	return all[:most]
}

// find gives the quotas of one key of a tier.
func (c *core) find(t policy.Tier, key policy.Key) []Quota {
	found := []Quota{}
	for _, q := range c.quotas {
		if q.name.Tier == t && q.name.Key == key {
			found = append(found, c.show(q))
		}
	}
	slices.SortFunc(found, func(a, b Quota) int { return cmp.Compare(a.Dimension+a.ID, b.Dimension+b.ID) })
	return found
}

func (c *core) show(q *quota) Quota {
	v := Quota{
		ID: base64.RawURLEncoding.EncodeToString([]byte(q.key)), Tier: q.name.Tier.String(), Unit: units[q.name.Dimension.Unit()], Named: q.named,
		Seen: q.told, Sent: q.sent, Answered: q.answered, Rejected: q.rejected,
		Quota: q.label, Dimension: q.name.Dimension.String(), Window: time.Duration(q.shared.Window).String(), Policy: q.shared.Limit,
		Limit: q.limit, Denied: q.denied, Off: q.off, Learned: q.learned,
	}
	for id, waiting := range q.queued {
		if n := c.nodes[id]; n != nil && c.now-n.seen < int64(c.params.Lease) {
			v.Queued += waiting
		}
	}
	if q.adapt != nil && q.adapt.control != nil {
		v.Rate = float64(q.adapt.control.Rate()) / float64(policy.Whole)
	}
	if q.adapt != nil && q.adapt.probing != nil {
		v.Policy = q.adapt.probing.probe.Limits()[q.adapt.probed] // the policy's is none
	}
	switch {
	case q.ledger != nil:
		v.Kind = "shares"
		counted := int64(0)
		for _, s := range q.ledger.States(c.now) {
			v.Granted += s.Rate
			counted += s.Counted
			v.Holders = append(v.Holders, Holder{s.Node, s.Demand, s.Rate, s.Window, s.Counted, s.Lease / int64(time.Millisecond), s.Silent, s.Behind})
		}
		if q.shared.Memory > 0 {
			v.Used = &counted
		}
	case q.lender != nil:
		v.Kind, v.Granted = "tokens", q.lender.Lent()
	case q.stock != nil:
		v.Kind, v.Left = "stock", new(int64)
		*v.Left = max(q.stock.Left(), 0)
		v.Used = new(int64)
		*v.Used = q.shared.Limit - q.stock.Left()
		for _, h := range q.stock.Holders() {
			*v.Used -= max(h.Given-h.Used, 0) // it is out, but not spent
			v.Granted += h.Given
			v.Holders = append(v.Holders, Holder{Node: h.Node, Share: h.Given, Used: h.Used})
		}
	}
	return v
}
