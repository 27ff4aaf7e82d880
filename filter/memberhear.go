// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// A memberKey is a bucket that callers ask for.
type memberKey struct {
	step   policy.Step
	quotas []*quota // by meter; nil: none yet
	used   int64
}

// A quota is a meter of a bucket, as the controller knows it.
type quota struct {
	name     string
	key      *memberKey
	meter    uint64 // [policy.Meter.ID]
	unit     policy.Unit
	overflow bool
	used     int64

	share  *fleet.Share
	credit *fleet.Credit
	drawer *fleet.Drawer
	taken  int64    // of what was lent, how much is known to be used
	lent   bool     // the record says so
	drew   int64    // when
	chunk  uint64   // the draw that the last chunk answered
	said   [3]int64 // given, used and returned, by the last draw

	asked    uint64 // the last draw
	askedFor int64  // units that a call waited for then

	calls, units int64 // offered since it was counted last
	refused      bool
	seen         offered // since the last report
	waiting      int64   // calls, as of the last look
	queued       bool    // it was told that calls wait
	counts       int64   // units in its window, where it is not shared
	counted      bool    // it was told that some do
	want         int64   // units
}

// A waitKey is whose calls wait for what.
type waitKey struct {
	vm    uint64
	quota *quota
}

type wait struct {
	calls, want, until int64
}

// hear takes in what the workers tell.
func (m *member) hear(now int64) {
	for news := m.vm.collect(offerName); ; {
		h, meters, rest := nextOffer(news)
		if h == nil {
			return
		}
		m.take(now, h, meters)
		news = rest
		m.vm.eager = now + eagerFor
	}
}

func (m *member) take(now int64, h *offerHeader, meters []offered) {
	limit := m.limits[h.entry]
	if limit == nil || len(limit.Meters) != len(meters) {
		return // of another policy
	}
	at := bucketKey{h.tier, h.key}
	k := m.keys[at]
	if k == nil {
		if len(m.keys) >= maxKeys {
			return // callers make up names
		}
		k = &memberKey{step: policy.Step{Tier: h.tier, Space: h.space, Key: h.key, Owner: h.owner, Limit: limit, Since: m.plugin.policy.Since}}
		m.keys[at] = k
	}
	k.used, k.step.Space, k.step.Owner = now, h.space, h.owner
	m.name(now, k)
	for i := range meters {
		q := k.quotas[i]
		if q == nil {
			continue
		}
		o := &meters[i]
		q.used = now
		q.calls, q.units, q.refused = q.calls+h.calls, q.units+h.cost.In(q.unit), q.refused || h.refused
		q.seen.add(o)
		if o.waiting > 0 {
			m.waits[waitKey{h.vm, q}] = wait{o.waiting, o.want, now + waitLasts}
		} else {
			delete(m.waits, waitKey{h.vm, q})
		}
	}
}

// name finds the quotas of a bucket, by what its record says now.
func (m *member) name(now int64, k *memberKey) {
	k.quotas = k.quotas[:0]
	m.vm.ledger.Shared(now, &k.step, func(sm *policy.SharedMeter, overflow bool) bool {
		n := fleet.Name{
			Tier: k.step.Tier, Dimension: sm.Meter.Dimension, Sub: sm.Meter.Sub(), Key: k.step.SharedKey(overflow),
			Entry: k.step.Limit.Entry(), Window: sm.Meter.Window().Milliseconds(), Period: sm.Period(),
		}.String()
		q := m.quotas[n]
		if q == nil && len(m.quotas) < maxQuotas {
			q = m.newQuota(now, n, k, sm, overflow)
			m.quotas[n] = q
		}
		if q != nil {
			q.key = k
		}
		k.quotas = append(k.quotas, q)
		return false
	})
}

func (m *member) newQuota(now int64, name string, k *memberKey, sm *policy.SharedMeter, overflow bool) *quota {
	q := &quota{name: name, key: k, meter: sm.Meter.ID(), unit: sm.Meter.Dimension.Unit(), overflow: overflow, used: now}
	lease := sm.Lease()
	switch {
	case !k.step.Limit.Shared():
		return q
	case sm.Drawn():
		q.drawer = fleet.NewDrawer(m.node.Name(), m.state.incarnation, name, uint64(now))
		m.given[q] = true
		return q
	case sm.Lent():
		m.lend(now, q, sm.Used())
		lease = policy.Lease{}
	}
	q.share = m.node.Restore(name, int64(sm.Meter.Window()), recordMeter{m.vm, q}, lease)
	if m.fresh = m.fresh || lease.Stage == policy.NoLease; lease.Stage == policy.NoLease && q.credit == nil && isSmall(sm.Meter) {
		m.lend(now, q, sm.Used()) // the controller would say so, a round trip later
	}
	return q
}

// isSmall says whether a controller lends a limit by the token however small the fleet is.
func isSmall(m policy.Meter) bool {
	const perSecond = 4
	return m.Dimension.Unit() == policy.Requests && m.Limit() < perSecond*int64(m.Window()/time.Second)
}

// lend makes the quota one that is lent by the token. It goes on being reported as one that is shared, which it becomes with the
// first grant.
func (m *member) lend(now int64, q *quota, used int64) {
	q.credit, q.taken = fleet.NewCredit(m.node.Name(), m.state.incarnation, q.name, m.params, uint64(now)), used
	m.given[q] = true
}
