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
	v.answerLate()
	v.lateTakes(now)
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
	d, now := TickEvery, p.vm.host.Now()
	if now < p.vm.eager {
		d = eagerTick
	}
	if wake != queue.Never {
		left := time.Duration(wake - now)
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
func (l *line) Try(_ queue.Handle, e queue.Entry) queue.Answer { return l.rescued(l.try, e) }

// Timeout is what the queue calls for an entry whose time is over.
func (l *line) Timeout(_ queue.Handle, e queue.Entry) { l.rescued(l.timeout, e) }

// rescued has a stream's turn, and ends one whose turn panics: else it would never be answered, and the queue offer it for ever.
func (l *line) rescued(turn func(*waiter, *queue.Entry) queue.Answer, e queue.Entry) (a queue.Answer) {
	v := l.plugin.vm
	w := v.waiters[e.ID]
	defer func() {
		if r := recover(); r != nil {
			v.report("turn", r)
			delete(v.waiters, e.ID)
			a = queue.Sent()
			v.answer(w.stream, func() {
				if w.stream.fail() == Continue && v.turning != w.stream {
					v.host.Resume()
				}
			})
		}
	}()
	return turn(w, &e)
}

func (l *line) try(w *waiter, e *queue.Entry) queue.Answer {
	v := l.plugin.vm
	s, now := w.stream, v.host.Now()
	if m := l.yields(l.now, e.Class, time.Duration(l.now-e.Arrived)); m != nil {
		w.refusal = l.passed(l.now, m, &w.cost)
		l.last, l.stop = w.refusal, w.refusal
		return queue.Stop(m.expires)
	}
	if a, wait := l.awaits(w, e, now); wait {
		return a
	}
	s.meetGate(&w.path)
	d := v.ledger.Reserve(now, &w.path, w.cost, &s.reservation)
	lacks := w.lack(now, v)
	if d.Verdict == policy.Deny && hopeless(d.Refusal.Reason) {
		s.leave()
		w.waited(now - e.Arrived)
		v.answer(s, func() { s.deny(&d.Refusal, &w.caller) })
		return queue.Sent() // it is not there any more
	}
	if d.Verdict == policy.Admit && len(w.path.Central) > 0 {
		s.noteShadow(&d)
		return l.ask(w, e, now)
	}
	if d.Verdict == policy.Admit {
		v.enter(s.id)
		s.waiter = nil
		delete(v.waiters, e.ID)
		w.waited(now - e.Arrived)
		v.countAdmitted()
		s.noteShadow(&d)
		s.send(w.request)
		if v.turning != s {
			v.host.Resume()
		}
		return queue.Sent()
	}
	w.refusal, l.last = d.Refusal, d.Refusal
	if lacks && d.Refusal.Tier != policy.TierProvider { // it comes when it comes, and whoever waits behind may lack nothing
		return queue.SkipAlone(now + int64(eagerTick))
	}
	until := now + min(max(int64(d.Refusal.Wait), int64(time.Millisecond)), int64(time.Minute))
	if lacks || d.Refusal.Dimension == policy.InFlight { // nobody knows when a call will end
		until = now + int64(TickEvery)
	}
	if d.Part && d.Refusal.Tier == policy.TierProvider {
		return queue.SkipClass(until)
	}
	return l.behind(&d.Refusal, e, until)
}

// behind is who else waits until then, for what refuses an entry.
func (l *line) behind(r *policy.Refusal, e *queue.Entry, until int64) queue.Answer {
	switch t := r.Tier; {
	case t == policy.TierProvider:
		l.stop = *r
		return queue.Stop(until)
	case t == policy.TierTenant && e.Parent != 0:
		return queue.SkipParent(until)
	case t == policy.TierTenant, t == policy.TierUser:
		return queue.Skip(until)
	}
	return queue.SkipAlone(until) // by a tool, a tree, an environment: others of the same user may not use it
}

// hopeless says whether no wait helps against a refusal.
func hopeless(r policy.Reason) bool {
	return r == policy.RequestTooLarge || r == policy.RetryBudgetExhausted
}

// A late answer is one that waits for the next tick.
type late struct {
	stream *Stream
	id     uint32
	give   func()
}

// answer has a stream that waits be answered: now, or in the next tick if it is the callback of another one that is running. For
// whatever a callback returns, Envoy does not let its stream go on if any stream is answered in it (proxy-wasm-cpp-host,
// send_local_response: stopNextIteration).
func (v *VM) answer(s *Stream, give func()) {
	if v.turning != nil && v.turning != s {
		v.late = append(v.late, late{s, s.id, give})
		return
	}
	v.enter(s.id)
	give()
}

// answerLate gives the answers that had to wait, to those that are still there. It is called in ticks only.
func (v *VM) answerLate() {
	all := v.late
	v.late = nil
	for _, l := range all {
		if l.stream.id == l.id && l.stream.phase == waiting {
			v.enter(l.id)
			l.give()
		}
	}
}

func (l *line) timeout(w *waiter, e *queue.Entry) queue.Answer {
	v := l.plugin.vm
	w.stream.abandon()
	delete(v.waiters, e.ID)
	w.stream.waiter = nil
	w.waited(l.now - e.Arrived)
	outcome := queue.QueueTimeout
	if w.held {
		outcome = queue.Queued // it is refused for the limit
	}
	refusal := w.because(outcome)
	v.answer(w.stream, func() { w.stream.deny(refusal, &w.caller) })
	return queue.Sent()
}
