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

// A tally is a count of one kind. In shared data tallies lie as they are in memory, as offers do.
type tally struct {
	of tallied
	n  int64

	limit int64  // of a denial: the last one's
	until int64  // of calls that wait now: when that is not true any more
	mark  uint64 // tallyLayout
}

// tallied is what is counted.
type tallied struct {
	kind                             tallyKind
	tier, dimension, reason, verdict uint8
	shadow                           bool
	class                            uint8 // by its place in the policy; unclassed: none
	bound                            uint8 // see [fleet.WaitBounds]
	key, tenant                      policy.Key
	vm                               uint64
}

type tallyKind uint8

const (
	tallyDenied tallyKind = iota
	tallyWaited           // calls that wait no more, by bound
	tallyWaits            // calls of a worker that wait now
)

const (
	unclassed = 255

	tallyLayout = 0x77670001 // changes with every change of the structs
	tallyName   = "ft"
	tallyBytes  = int(unsafe.Sizeof(tally{}))
	maxTallies  = 64  // that a worker keeps apart; what is beyond it says no more whose it is
	maxTallied  = 512 // that the member does
	tallyEvery  = int64(1e9)
	waitsFor    = 5 * tallyEvery / 2
)

// A tallies is a list of counts, which is short.
type tallies []tally

// add counts. What there is no place for is counted without a key; and if there is no place for that either, not at all.
func (t *tallies) add(c *tally, most int) {
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
	c := tally{n: 1, limit: r.Limit, of: tallied{
		kind: tallyDenied, reason: uint8(r.Reason), verdict: uint8(d), shadow: name == metricShadow, class: s.tallyClass(), tenant: s.buckets[policy.TierTenant],
	}}
	if r.Limit > 0 || r.Reason == policy.ProviderCooling { // else there is nobody's limit that refuses
		c.of.tier, c.of.dimension, c.of.key = uint8(r.Tier), uint8(r.Dimension), s.buckets[r.Tier]
	}
	s.vm.tallies.add(&c, maxTallies)
}

func (s *Stream) tallyClass() uint8 {
	if s.class.Name == "" {
		return unclassed
	}
	return uint8(min(s.classIndex, unclassed))
}

// tellTallies tells the member what was counted, once a second.
func (v *VM) tellTallies(now int64) {
	if now-v.tallied < tallyEvery {
		return
	}
	v.tallied = now
	var waits tallies
	for _, w := range v.waiters {
		if w.queued {
			waits.add(&tally{n: 1, until: now + waitsFor, of: tallied{kind: tallyWaits, class: w.stream.tallyClass(), vm: v.id}}, maxTallies)
		}
	}
	if news := v.tallies.append(waits.append(nil)); len(news) > 0 && v.post(tallyName, news) {
		v.tallies = v.tallies[:0]
	}
}

func (t tallies) append(b []byte) []byte {
	for i := range t {
		t[i].mark = tallyLayout
		b = append(b, unsafe.Slice((*byte)(unsafe.Pointer(&t[i])), tallyBytes)...)
	}
	return b
}

// hearTallies takes in what the workers have counted.
func (m *member) hearTallies() {
	for news := m.vm.collect(tallyName); len(news) >= tallyBytes; news = news[tallyBytes:] {
		t := (*tally)(unsafe.Pointer(unsafe.SliceData(news)))
		if t.mark != tallyLayout {
			return
		}
		if t.of.kind != tallyWaits {
			m.tallies.add(t, maxTallied)
			continue
		}
		m.waiting = slices.DeleteFunc(m.waiting, func(w tally) bool { return w.of == t.of }) // it is newer
		m.waiting.add(t, maxTallied)
	}
}

// tellTallies adds to a message what was counted.
func (m *member) tellTallies(now int64, msg *fleet.FromNode) (told tallies) {
	m.hearTallies()
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
	for i := range m.tallies {
		t := &m.tallies[i]
		if t.of.kind == tallyWaited {
			waits(t.of.class).Within[t.of.bound] += t.n
			continue
		}
		msg.Denials = append(msg.Denials, fleet.Denial{
			Tier: policy.Tier(t.of.tier), Dimension: policy.Dimension(t.of.dimension), Reason: policy.Reason(t.of.reason), Verdict: policy.Verdict(t.of.verdict),
			Shadow: t.of.shadow, Key: t.of.key, Tenant: t.of.tenant, Class: name(t.of.class), Limit: t.limit, Calls: t.n,
		})
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(t tally) bool {
		w := waits(t.of.class) // once more when they wait no longer, so that it is known
		if now >= t.until {
			return true
		}
		w.Now += t.n
		return false
	})
	told, m.tallies = m.tallies, nil
	return told
}
