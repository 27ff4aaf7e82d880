// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math"
	"slices"
	"time"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/queue"
)

// A request that a limit refuses for now waits, if its class says so: the stream stays paused with its body in Envoy's buffer,
// and is tried again when its turn comes. Each worker has a line of its own for each pool of a provider, and only a stream's own
// worker can let it go.

// A line is what waits for one pool of a provider.
type line struct {
	plugin *Plugin
	queue  *queue.Queue
	wake   int64          // ns: when the next turn is due
	last   policy.Refusal // what the first of the line waits for
}

// A lineKey is whose pool it is: model is nil where the provider has none for it.
type lineKey struct {
	provider *policy.Provider
	model    *policy.Model
}

// A waiter is what a stream needs to be tried again.
type waiter struct {
	stream  *Stream
	line    *line
	handle  queue.Handle
	path    policy.Path
	cost    policy.Cost
	request dialect.Request
	caller  policy.Caller
	refusal policy.Refusal // the last one
}

// line gives the line for a pool; make says whether to make it.
func (p *Plugin) line(provider *policy.Provider, model *policy.Model, create bool) *line {
	k := lineKey{provider, model}
	l := p.lines[k]
	if l != nil || !create {
		return l
	}
	q, err := queue.New(p.queueConfig())
	if err != nil { // the policy was compiled with the same bounds
		return nil
	}
	l = &line{plugin: p, queue: q, wake: queue.Never}
	p.lines[k] = l
	return l
}

func (p *Plugin) queueConfig() queue.Config {
	c := queue.Config{
		Entries: int(p.policy.Queue.Entries), Bytes: p.policy.Queue.Bytes, Discipline: queue.Strict, Budget: &p.budget,
	}
	for _, class := range p.policy.Classes {
		if class.Aging > 0 {
			c.Discipline = queue.Threshold
		}
		c.Classes = append(c.Classes, queue.Class{Threshold: class.Aging})
	}
	return c
}

// others says whether somebody waits for the pool already: then nobody is tried out of turn.
func (s *Stream) others(model *policy.Model) bool {
	l := s.plugin.line(s.provider, model, false)
	return l != nil && l.queue.Len() > 0
}

// stand puts a stream into the line for its pool, behind those of its class, and has the line's turn. If the stream's own comes
// in it, it goes at once; if not, it waits if its class does, or is refused.
func (s *Stream) stand(now int64, model *policy.Model, w *waiter) Action {
	l, class := s.plugin.line(s.provider, model, true), &s.class
	if l == nil {
		return s.deny(&w.refusal, &w.caller)
	}
	w.stream, w.line = s, l
	patience := time.Duration(math.MaxInt64 / 2)
	expected := int64(0)
	if class.OnLimit == policy.OnLimitQueue {
		patience, expected = s.patience(class.Wait), int64(w.refusal.Wait)
	}
	v := s.vm
	v.lastID++
	var outcome queue.Outcome
	w.handle, outcome = l.queue.Push(now, queue.Entry{
		ID: v.lastID, Class: s.classIndex, Owner: w.owner(), Bytes: s.bytes, Deadline: now + int64(patience),
	}, expected)
	if outcome != queue.Queued {
		return s.deny(w.because(outcome), &w.caller)
	}
	s.phase, s.waiter = waiting, w
	v.waiters[v.lastID] = w
	if !slices.Contains(v.plugins, s.plugin) {
		v.plugins = append(v.plugins, s.plugin)
	}
	v.turning, v.effective = s, 0
	l.turn(now)
	if v.enter(s.id); s.phase == waiting {
		s.plugin.tickAt(l.wake)
	}
	v.turning = nil
	if s.phase != waiting {
		return s.held()
	}
	if class.OnLimit != policy.OnLimitQueue {
		s.leave()
		return s.deny(w.because(queue.Queued), &w.caller)
	}
	v.countQueued()
	return s.held()
}

// owner is whose narrower buckets the waiter has to pass: those of its narrowest tier but tools and trees.
func (w *waiter) owner() uint64 {
	for i := range w.path.Len {
		if s := &w.path.Steps[i]; s.Tier == policy.TierUser || s.Tier == policy.TierTenant {
			return uint64(s.Owner)
		}
	}
	return 0
}

// because is what a waiter is refused with: the limit that it met, or else the one that the line waits for.
func (w *waiter) because(o queue.Outcome) *policy.Refusal {
	r := w.refusal
	if r.Reason == policy.None {
		r = w.line.last
	}
	switch o {
	case queue.QueueFull:
		r.Reason = policy.QueueFull
	case queue.QueueTimeout:
		r.Reason = policy.QueueTimeout
	}
	return &r
}

// turn offers the line to its limits.
func (l *line) turn(now int64) {
	defer l.plugin.vm.guard("turn")
	l.wake = queue.Never
	l.wake = l.queue.Turn(now, l)
}

// turns has the turn of every line in which somebody waits, in a tick of p: what they wait for may be there sooner than was
// thought.
func (v *VM) turns(now int64, p *Plugin) {
	v.turning, v.effective = nil, 0
	next := int64(queue.Never)
	for _, other := range v.plugins {
		for _, l := range other.lines {
			if l.queue.Len() > 0 {
				l.turn(now)
				next = min(next, l.wake)
			}
		}
	}
	v.plugins = slices.DeleteFunc(v.plugins, func(p *Plugin) bool { return p.budget.Entries == 0 })
	if v.effective != 0 {
		v.enter(p.id)
	}
	p.tickAt(next)
}

// tickAt makes the plugin's next tick come at that time, if it is before the usual one.
func (p *Plugin) tickAt(wake int64) {
	d := TickEvery
	if left := wake - p.vm.host.Now(); wake != queue.Never && left < int64(d) {
		d = max((time.Duration(left)+time.Millisecond-1)/time.Millisecond, 1) * time.Millisecond
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
	d := v.ledger.Reserve(now, &w.path, w.cost, &s.reservation)
	if d.Verdict == policy.Admit {
		v.enter(s.id)
		s.waiter = nil
		delete(v.waiters, e.ID)
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
	if t := d.Refusal.Tier; t == policy.TierProvider || t == policy.TierEnvironment {
		return queue.Stop(until)
	}
	return queue.Skip(until)
}

// Timeout is what the queue calls for an entry whose time is over.
func (l *line) Timeout(_ queue.Handle, e queue.Entry) {
	v := l.plugin.vm
	w := v.waiters[e.ID]
	delete(v.waiters, e.ID)
	w.stream.waiter = nil
	v.enter(w.stream.id)
	w.stream.deny(w.because(queue.QueueTimeout), &w.caller)
}

// leave takes a stream out of its line.
func (s *Stream) leave() {
	w := s.waiter
	if w == nil {
		return
	}
	if e, ok := w.line.queue.Get(w.handle); ok {
		delete(s.vm.waiters, e.ID)
	}
	w.line.queue.Cancel(w.handle)
	s.waiter = nil
}
