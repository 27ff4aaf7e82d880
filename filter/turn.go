// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"slices"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/queue"
)

// turn offers the line to its limits.
func (l *line) turn(now int64) {
	defer l.plugin.vm.guard("turn")
	l.wake, l.now = queue.Never, now
	l.wake = l.queue.Turn(now, l)
}

// turns has the turn of every line in which somebody waits, in a tick of p: what they wait for may be there sooner than was
// thought.
func (v *VM) turns(now int64, p *Plugin) {
	v.turning, v.effective = nil, 0
	next := int64(queue.Never)
	for _, other := range v.plugins {
		for _, l := range other.lines {
			if l.queue.Len() > 0 || l.said.expires > now {
				l.turn(now)
				l.tell(now)
				next = min(next, l.wake)
			}
		}
	}
	v.plugins = slices.DeleteFunc(v.plugins, func(p *Plugin) bool { return p.budget.entries == 0 })
	if v.effective != 0 {
		v.enter(p.id)
	}
	p.tickAt(next)
}

// tickAt makes the plugin's next tick come at that time, if it is before the usual one.
func (p *Plugin) tickAt(wake int64) {
	d := TickEvery
	if wake != queue.Never {
		left := time.Duration(wake - p.vm.host.Now())
		d = min(d, max((left+time.Millisecond-1)/time.Millisecond, 1)*time.Millisecond)
	}
	if d != p.period {
		p.period = d
		p.vm.host.SetTick(d)
	}
}

// enter makes host calls be about a stream, or about a plugin.
func (v *VM) enter(id uint32) {
	if v.effective != id && (v.effective != 0 || v.turning == nil || v.turning.id != id) {
		v.effective = id
		v.host.Enter(id)
	}
}

// Try is what the queue asks for each entry in its order.
func (l *line) Try(_ queue.Handle, e queue.Entry) queue.Answer {
	v := l.plugin.vm
	w := v.waiters[e.ID]
	s, now := w.stream, v.host.Now()
	if m := l.yields(l.now, e.Class, time.Duration(l.now-e.Arrived)); m != nil {
		w.refusal = l.passed(l.now, m, &w.cost)
		l.last, l.stop = w.refusal, w.refusal
		return queue.Stop(m.expires)
	}
	d := v.ledger.Reserve(now, &w.path, w.cost, &s.reservation)
	if d.Verdict == policy.Admit {
		v.enter(s.id)
		s.waiter = nil
		delete(v.waiters, e.ID)
		w.waited(now - e.Arrived)
		v.countAdmitted()
		s.send(w.request)
		if v.turning != s {
			v.host.Resume()
		}
		return queue.Sent()
	}
	w.refusal, l.last = d.Refusal, d.Refusal
	until := now + min(max(int64(d.Refusal.Wait), int64(time.Millisecond)), int64(time.Minute))
	if d.Refusal.Dimension == policy.InFlight { // nobody knows when a call will end
		until = now + int64(TickEvery)
	}
	switch t := d.Refusal.Tier; {
	case t == policy.TierProvider && d.Part:
		return queue.SkipClass(until)
	case t == policy.TierProvider:
		l.stop = d.Refusal
		return queue.Stop(until)
	case t == policy.TierTenant && e.Parent != 0:
		return queue.SkipParent(until)
	case t == policy.TierTenant, t == policy.TierUser:
		return queue.Skip(until)
	}
	return queue.SkipAlone(until) // by a tool, a tree, an environment: others of the same user may not use it
}

// Timeout is what the queue calls for an entry whose time is over.
func (l *line) Timeout(_ queue.Handle, e queue.Entry) {
	v := l.plugin.vm
	w := v.waiters[e.ID]
	delete(v.waiters, e.ID)
	w.stream.waiter = nil
	w.waited(l.now - e.Arrived)
	v.enter(w.stream.id)
	w.stream.deny(w.because(queue.QueueTimeout), &w.caller)
}
