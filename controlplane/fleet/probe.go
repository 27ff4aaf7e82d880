// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/binary"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/feedback"
)

// probing finds the limits of one provider's model that the policy does not know (`probe: true`). What is found is kept, shown as
// learned, and followed like any limit from then on.
type probing struct {
	probe    *feedback.Probe
	key      string // of its record
	label    string
	quotas   [feedback.NumProbed]*quota // that it has a say in
	sent     [feedback.NumProbed]lastMinute
	answered int64
	rejected [feedback.NumProbed]int64
	stepped  int64
	raised   bool // since this controller began
}

const probeRecord = "probe/"

// callsOfNode is how many calls a minute are tried for each Envoy at least: with less, a share is no call.
const callsOfNode = 4

// startProbing makes a quota one whose limit is found, or ends that; nil: the policy knows it.
func (c *core) startProbing(q *quota, e *policy.Entry) (p *probing, at feedback.Probed) {
	k := keyOf{q.name.Tier, q.name.Key}
	p = c.probes[k]
	first, probed := e.Limit.Probed(q.name.Dimension)
	if !probed {
		return nil, 0
	}
	if p == nil {
		p = &probing{probe: feedback.NewProbe(c.now), key: probeRecord + q.label, label: q.label, stepped: c.now}
		p.load(c.records[p.key])
		c.probes[k] = p
	}
	if at = feedback.ProbedTokens; q.name.Dimension.Unit() == policy.Requests {
		at = feedback.ProbedRequests
		p.probe.AtLeast(at, max(first, callsOfNode*int64(c.connected())))
	}
	p.quotas[at] = q
	if p.probe.Found(at) {
		c.found(q, p.probe.Limits()[at])
	}
	return p, at
}

func (p *probing) seen(now int64, at feedback.Probed, sent, answered, rejected int64) {
	p.sent[at].add(now, sent)
	if !p.probe.Found(at) { // then the rate follows them
		p.rejected[at] += rejected
	}
	if at == feedback.ProbedRequests || p.quotas[feedback.ProbedRequests] == nil {
		p.answered += answered
	}
}

// stepProbe takes the next step, once a second.
func (c *core) stepProbe(p *probing) {
	if c.now-p.stepped < stepEvery {
		return
	}
	p.stepped = c.now
	s := feedback.ProbeSample{Answered: p.answered}
	named := 0
	for i := range p.sent {
		s.Used[i] = p.sent[i].sum(c.now)
		if p.quotas[i] == nil || p.rejected[i] == 0 {
			continue
		}
		s.Rejected = max(s.Rejected, p.rejected[i])
		s.By = feedback.Probed(i).Dimension().Quantity
		named++
	}
	if named > 1 && p.raised {
		s.By = feedback.Unknown // what counts for all names none: then it is about what was raised last
	}
	p.rejected = [feedback.NumProbed]int64{}
	f, changed := p.probe.Step(c.now, s)
	if !changed {
		return
	}
	p.answered, p.raised = 0, p.raised || !f.Found
	c.dirty[p.key] = p.save()
	q := p.quotas[f.Probed]
	if q == nil {
		return
	}
	reason := "probe"
	if f.Found {
		reason = "found"
		c.found(q, f.To)
	}
	c.setLimit(q)
	c.note(Change{
		At: c.wall, Quota: q.label, Dimension: q.name.Dimension.String(), Reason: reason, Limit: q.limit,
		From: float64(f.From) / float64(q.shared.Limit), To: float64(f.To) / float64(q.shared.Limit),
	})
}

// toldLimit takes a limit that the provider has told itself.
func (c *core) toldLimit(q *quota, limit int64) {
	if q.adapt == nil || q.adapt.probing == nil {
		return
	}
	a := q.adapt
	if was := a.probing.probe.Limits()[a.probed]; was != limit || !a.probing.probe.Found(a.probed) {
		a.probing.probe.Tell(a.probed, limit)
		c.dirty[a.probing.key] = a.probing.save()
		c.setLimit(q)
	}
}

// found shows a limit as one that was learned, so that it can be written into the policy.
func (c *core) found(q *quota, limit int64) {
	q.learned = &Learned{Limit: limit, Found: true, At: c.wall}
}

func (p *probing) save() (b []byte) {
	for i, limit := range p.probe.Limits() {
		b = binary.AppendVarint(b, limit)
		b = append(b, map[bool]byte{true: 1}[p.probe.Found(feedback.Probed(i))])
	}
	return b
}

func (p *probing) load(b []byte) {
	for i := range feedback.NumProbed {
		limit, n := binary.Varint(b)
		if n <= 0 || len(b) <= n || limit <= 0 {
			return
		}
		if p.probe.AtLeast(i, limit); b[n] == 1 {
			p.probe.Tell(i, limit)
		}
		b = b[n+1:]
	}
}

// lastMinute is a sum over the last 60 seconds.
type lastMinute struct {
	slots [60]int64
	at    int64 // s
}

func (m *lastMinute) add(now, n int64) {
	m.sum(now)
	m.slots[m.at%60] += n
}

func (m *lastMinute) sum(now int64) (sum int64) {
	for to := now / 1e9; m.at < to; {
		m.at = max(m.at+1, to-60)
		m.slots[m.at%60] = 0
	}
	for _, n := range m.slots {
		sum += n
	}
	return sum
}
