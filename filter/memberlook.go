// SPDX-License-Identifier: Apache-2.0

package filter

import "github.com/weirproxy/weir/policy"

// look follows up what was heard: who waits, what is demanded, what has become of what was given.
func (m *member) look(now int64) {
	m.countWaits(now)
	if now-m.offered >= offerEvery {
		m.offered = now
		m.countDemand(now)
	}
	for q := range m.given {
		switch {
		case q.credit != nil:
			m.lookAtCredit(now, q)
		case q.drawer == nil:
			delete(m.given, q) // it is shared now
		case q.want > 0 && now-m.heard > away:
			m.fallBack(now, q)
		case q.want > 0 && now-q.drew >= drawAgain:
			m.urgent = true
		}
	}
	if now-m.swept >= sweepEvery {
		m.swept = now
		m.sweep(now)
	}
}

// sweep drops what nobody uses.
func (m *member) sweep(now int64) {
	for name, q := range m.quotas {
		if now-q.used > keepQuota && (q.credit == nil || q.credit.Idle()) {
			m.retire(now, name, q)
		}
	}
	for at, k := range m.keys {
		if now-k.used > keepQuota {
			delete(m.keys, at)
		}
	}
}

// retire drops a quota that nobody uses, when nothing is held of it any more, or for lack of room.
func (m *member) retire(now int64, name string, q *quota) {
	switch held := q.share != nil && q.credit == nil && q.share.Live(now); {
	case q.counted && len(m.quotas) < maxQuotas/2:
		return
	case held && len(m.quotas) < maxQuotas/2:
		return
	case held:
		m.unsure(now, policy.Entry{Limit: q.key.step.Limit})
	}
	m.dropQuota(name, q)
}

// away is after how long without an answer the controller counts as away; a floor then lasts for floorFor.
const (
	away     = int64(2e9)
	floorFor = int64(60e9)
)

// fallBack gives a request tree its floor, once, if nothing has ever been granted of it.
func (m *member) fallBack(now int64, q *quota) {
	q.each(m.vm, now, func(sm *policy.SharedMeter) bool {
		floor := q.key.step.Limit.Floor(sm.Meter)
		if floor == 0 || sm.Given() > 0 {
			return false
		}
		sm.Draw(floor, now+floorFor, 0)
		return true
	})
}

// drawAgain is after how long a draw is repeated that somebody waits for.
const drawAgain = int64(100e6)

func (m *member) countWaits(now int64) {
	for _, q := range m.waited {
		q.waiting, q.want = 0, 0
	}
	m.waited = m.waited[:0]
	for k, w := range m.waits {
		if now >= w.until {
			delete(m.waits, k)
			continue
		}
		m.waited = append(m.waited, k.quota)
		k.quota.waiting += w.calls
		k.quota.want = max(k.quota.want, w.want)
	}
}

func (m *member) countDemand(now int64) {
	for _, q := range m.quotas {
		if q.drawer != nil {
			q.drawer.Demand.Offer(now, q.units, q.calls)
		} else if q.share != nil {
			q.share.Offer(now, q.units, q.calls, q.refused)
		}
		q.calls, q.units, q.refused = 0, 0, q.waiting > 0
	}
}

// lookAtCredit sees what has become of tokens that were lent, and takes back what nobody has used for a while.
func (m *member) lookAtCredit(now int64, q *quota) {
	held, stale := q.credit.Held(now)
	if held == 0 {
		m.urgent = m.urgent || q.waiting > 0
		return
	}
	used, have, back := int64(0), int64(0), int64(0)
	q.each(m.vm, now, func(sm *policy.SharedMeter) bool {
		used, back = sm.Used(), 0
		if idle := stale - (used - q.taken); idle > 0 {
			back = sm.Recall(idle)
		}
		have = sm.Have(now)
		return back > 0
	})
	q.credit.Used(used - q.taken)
	q.credit.Back(back)
	q.taken = used
	m.urgent = m.urgent || q.waiting > have
}
