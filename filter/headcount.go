// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"slices"
	"unsafe"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// What becomes of calls the control plane is told for those who ask why: who was refused by what, and who waits by class. Each worker
// counts, and tells the member once a second, through shared data.

// A headcount is a count of one kind. In shared data headcounts lie as they are in memory, as offers do.
type headcount struct {
	of headcounted
	n  int64

	limit int64  // of a denial: the last one's
	until int64  // of calls that wait now: when that is not true any more
	mark  uint64 // headcountLayout
}

// headcounted is what is counted.
type headcounted struct {
	kind                             headcountKind
	tier, dimension, reason, verdict uint8
	shadow                           bool
	class                            uint8 // by its place in the policy; unclassed: none
	bound                            uint8 // see [fleet.WaitBounds]
	key, tenant                      policy.Key
	vm                               uint64
}

type headcountKind uint8

const (
	headcountDenied headcountKind = iota
	headcountWaited               // calls that wait no more, by bound
	headcountWaits                // calls of a worker that wait now
)

const (
	unclassed = 255

	headcountLayout = 0x77670001 // changes with every change of the structs
	headcountName   = "ft"
	headcountBytes  = int(unsafe.Sizeof(headcount{}))
	maxHeadcounts   = 64  // that a worker keeps apart; what is beyond it says no more whose it is
	maxCounted      = 512 // that the member does
	headcountEvery  = int64(1e9)
	waitsFor        = 5 * headcountEvery / 2
)

// A headcounts is a list of counts, which is short.
type headcounts []headcount

// add counts. What there is no place for is counted without a key; and if there is no place for that either, not at all.
func (t *headcounts) add(c *headcount, most int) {
	for i := range *t {
		if e := &(*t)[i]; e.of == c.of {
			e.n, e.limit = e.n+c.n, c.limit
			return
		}
	}
	switch {
	case len(*t) < most:
		*t = append(*t, *c)
	case c.of.key|c.of.tenant != 0:
		rest := *c
		rest.of.key, rest.of.tenant = 0, 0
		t.add(&rest, most+most/2)
	}
}

// meets notes which buckets a call has to pass.
func (s *Stream) meets(path *policy.Path) {
	if !s.plugin.policy.Reports {
		return
	}
	for i := range path.Len {
		s.buckets[path.Steps[i].Tier] = path.Steps[i].Key
	}
	for i := range path.Central {
		s.buckets[path.Central[i].Tier] = path.Central[i].Key
	}
}

// countDecision counts what became of a request that was refused.
func (s *Stream) countDecision(d policy.Verdict, name string, r *policy.Refusal) {
	s.vm.countDecision(d, name, r)
	if !s.plugin.policy.Reports {
		return
	}
	c := headcount{n: 1, limit: r.Limit, of: headcounted{
		kind: headcountDenied, reason: uint8(r.Reason), verdict: uint8(d), shadow: name == metricShadow, class: s.headcountClass(), tenant: s.buckets[policy.TierTenant],
	}}
	if r.Limit > 0 || r.Reason == policy.ProviderCooling { // else there is nobody's limit that refuses
		c.of.tier, c.of.dimension, c.of.key = uint8(r.Tier), uint8(r.Dimension), s.buckets[r.Tier]
	}
	s.vm.headcounts.add(&c, maxHeadcounts)
}

func (s *Stream) headcountClass() uint8 {
	if s.class.Name == "" {
		return unclassed
	}
	return uint8(min(s.classIndex, unclassed))
}

// tellHeadcounts tells the member what was counted, once a second.
func (v *VM) tellHeadcounts(now int64) {
	if now-v.counted < headcountEvery {
		return
	}
	v.counted = now
	var waits headcounts
	for _, w := range v.waiters {
		if w.queued {
			waits.add(&headcount{n: 1, until: now + waitsFor, of: headcounted{kind: headcountWaits, class: w.stream.headcountClass(), vm: v.id}}, maxHeadcounts)
		}
	}
	if news := v.headcounts.append(waits.append(nil)); len(news) > 0 && v.post(headcountName, news) {
		v.headcounts = v.headcounts[:0]
	}
}

func (t headcounts) append(b []byte) []byte {
	for i := range t {
		t[i].mark = headcountLayout
		b = append(b, unsafe.Slice((*byte)(unsafe.Pointer(&t[i])), headcountBytes)...)
	}
	return b
}

// hearHeadcounts takes in what the workers have counted.
func (m *member) hearHeadcounts() {
	for news := m.vm.collect(headcountName); len(news) >= headcountBytes; news = news[headcountBytes:] {
		t := (*headcount)(unsafe.Pointer(unsafe.SliceData(news)))
		if t.mark != headcountLayout {
			return
		}
		if t.of.kind != headcountWaits {
			m.headcounts.add(t, maxCounted)
			continue
		}
		m.waiting = slices.DeleteFunc(m.waiting, func(w headcount) bool { return w.of == t.of }) // it is newer
		m.waiting.add(t, maxCounted)
	}
}

// tellHeadcounts adds to a message what was counted.
func (m *member) tellHeadcounts(now int64, msg *fleet.FromNode) (told headcounts) {
	m.hearHeadcounts()
	classes := m.plugin.policy.Classes
	name := func(i uint8) string {
		if int(i) < len(classes) {
			return classes[i].Name
		}
		return ""
	}
	waits := func(i uint8) *fleet.Waits {
		for k := range msg.Waits {
			if msg.Waits[k].Class == name(i) {
				return &msg.Waits[k]
			}
		}
		msg.Waits = append(msg.Waits, fleet.Waits{Class: name(i)})
		return &msg.Waits[len(msg.Waits)-1]
	}
	for i := range m.headcounts {
		t := &m.headcounts[i]
		if t.of.kind == headcountWaited {
			waits(t.of.class).Within[t.of.bound] += t.n
			continue
		}
		msg.Denials = append(msg.Denials, fleet.Denial{
			Tier: policy.Tier(t.of.tier), Dimension: policy.Dimension(t.of.dimension), Reason: policy.Reason(t.of.reason), Verdict: policy.Verdict(t.of.verdict),
			Shadow: t.of.shadow, Key: t.of.key, Tenant: t.of.tenant, Class: name(t.of.class), Limit: t.limit, Calls: t.n,
		})
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(t headcount) bool {
		w := waits(t.of.class) // once more when they wait no longer, so that it is known
		if now >= t.until {
			return true
		}
		w.Now += t.n
		return false
	})
	told, m.headcounts = m.headcounts, nil
	return told
}
