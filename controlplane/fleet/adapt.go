// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/feedback"
	"github.com/weirproxy/weir/policy/fleet"
)

// adapted is what makes one limit of a provider's model follow what it answers.
type adapted struct {
	spec    policy.AdaptSpec
	ramping policy.RampSpec
	control *feedback.Controller // nil: adapt: off
	ramp    *feedback.Ramp       // nil: none
	sample  feedback.Sample      // what nodes have said since the last step
	stepped int64

	probing *probing // nil: the policy has the limit
	probed  feedback.Probed
}

// stepEvery is how often the rate may climb. A rejection counts at once.
const stepEvery = int64(time.Second)

const rateRecord = "rate/"

// startAdapting makes a provider's limit follow what it answers, as the policy says. A rate that goes on under other rules
// stays where it is.
func (c *core) startAdapting(q *quota, e *policy.Entry) {
	if e.Tier != policy.TierProvider || q.stock != nil || c.dir.spec == nil {
		q.adapt = nil
		return
	}
	p := c.dir.spec.Providers[e.Provider]
	probing, probed := c.startProbing(q, e)
	if q.adapt != nil && q.adapt.spec == p.Adapt && q.adapt.ramping == p.Ramp && q.adapt.probing == probing {
		return
	}
	a := &adapted{spec: p.Adapt, ramping: p.Ramp, stepped: c.now, probing: probing, probed: probed}
	if !p.Adapt.Off {
		from, _ := c.load(rateRecord+q.key, int64(policy.Whole), int64(policy.Whole))
		if q.adapt != nil && q.adapt.control != nil {
			from = int64(q.adapt.control.Rate())
		}
		a.control = feedback.NewController(feedback.RulesOf(p.Adapt), policy.Share(from), c.now)
	}
	if p.Ramp.Above > 0 && p.Ramp.Growth.Share > 0 && q.name.Dimension.Unit() != policy.Requests {
		a.ramp = feedback.NewRamp(int64(p.Ramp.Above), p.Ramp.Growth)
	}
	if q.adapt = a; a.control == nil && a.ramp == nil && probing == nil {
		q.adapt = nil
	}
	c.setLimit(q)
}

// limit is what is in force of a limit.
func (a *adapted) limit(now, whole int64) int64 {
	limit := whole
	if a.probing != nil {
		limit = min(limit, a.probing.probe.Limits()[a.probed])
	}
	if a.follows() {
		limit = a.control.Limit(limit)
	}
	if a.ramp != nil {
		limit = min(limit, max(a.ramp.Ceiling(now), 1))
	}
	return limit
}

// follows says whether the rate follows what the provider answers: what is still tried does not, for its answers are the probe's.
func (a *adapted) follows() bool {
	return a.control != nil && (a.probing == nil || a.probing.probe.Found(a.probed))
}

// seen takes in what happened at a quota.
func (c *core) seen(n *node, s *fleet.Seen) {
	q := c.quota(s.Key)
	if q == nil {
		return
	}
	q.used, q.told = c.now, true
	q.denied += s.Denied
	q.sent += s.Sent
	q.answered += s.Answered
	q.rejected += s.Rejected
	if s.Queued > 0 {
		q.queued[n.id] = s.Queued
	} else {
		delete(q.queued, n.id)
	}
	a := q.adapt
	if a == nil {
		return
	}
	if a.ramp != nil {
		a.ramp.Sent(c.now, s.Sent)
	}
	if a.probing != nil {
		a.probing.seen(c.now, a.probed, s.Sent, s.Answered, s.Rejected)
	}
	if a.follows() && s.Epoch == a.control.Epoch() {
		a.sample.Answered += s.Answered
		a.sample.Rejected += s.Rejected
		a.sample.Sent += s.Sent
		if s.Rejected > 0 {
			c.step(q)
		}
	}
	c.tell(q, n)
	c.schedule(q)
}

// tell says the rate's epoch to a node that uses it.
func (c *core) tell(q *quota, n *node) {
	if q.adapt == nil || q.adapt.control == nil {
		return
	}
	r := fleet.Rate{Key: q.key, Epoch: q.adapt.control.Epoch(), Share: q.adapt.control.Rate()}
	if old, ok := n.rates[q.key]; !ok && r.Epoch == 0 && r.Share == policy.Whole || old == r {
		return // what a node takes for granted
	}
	n.rates[q.key] = r
	n.touch(c.now, soon)
}

// adaptTick lets the rate climb by the passing of time.
func (c *core) adaptTick(q *quota) {
	if q.adapt == nil || c.now-q.adapt.stepped < stepEvery {
		return
	}
	if q.adapt.probing != nil {
		c.stepProbe(q.adapt.probing)
	}
	if q.adapt.follows() {
		c.step(q)
	}
	c.setLimit(q) // the ramp's ceiling moves by itself
}

// step gives what was seen to the controller of the rate, and applies what it says.
func (c *core) step(q *quota) {
	a := q.adapt
	s := a.sample
	s.Epoch = a.control.Epoch()
	s.Could = int64(float64(q.limit) * float64(c.now-a.stepped) / float64(q.shared.Window))
	a.sample, a.stepped = feedback.Sample{}, c.now
	change, changed := a.control.Step(c.now, s)
	if !changed {
		return
	}
	c.setLimit(q)
	c.keep(rateRecord+q.key, int64(a.control.Rate()), 0)
	c.note(Change{
		At: c.wall, Quota: q.label, Dimension: q.name.Dimension.String(), Reason: change.Reason.String(), Limit: q.limit,
		From: float64(change.From) / float64(policy.Whole), To: float64(change.To) / float64(policy.Whole), Epoch: change.Epoch,
	})
	for _, n := range c.nodes {
		if _, uses := n.rates[q.key]; uses || c.holds(q, n) {
			c.tell(q, n)
		}
	}
}

// holds says whether a node has something to do with a quota.
func (c *core) holds(q *quota, n *node) bool {
	_, grant := n.grants[q.key]
	_, lent := n.lent[q.key]
	return grant || lent || c.now-n.seen < int64(c.params.Lease)
}

// A Change is one of a provider's rate.
type Change struct {
	At        time.Time `json:"at"`
	Quota     string    `json:"quota"`
	Dimension string    `json:"dimension"`
	Reason    string    `json:"reason"`
	From      float64   `json:"from"`  // of the limit in the policy
	To        float64   `json:"to"`    // of the limit in the policy
	Limit     int64     `json:"limit"` // now in force
	Epoch     uint32    `json:"epoch"`
}

// maxChanges is how many changes are kept for people to see.
const maxChanges = 200

func (c *core) note(ch Change) {
	c.log.Info("rate changed", "quota", ch.Quota, "dimension", ch.Dimension, "reason", ch.Reason, "from", ch.From, "to", ch.To, "limit", ch.Limit)
	if len(c.changes) >= maxChanges {
		c.changes = c.changes[1:]
	}
	c.changes = append(c.changes, ch)
}
