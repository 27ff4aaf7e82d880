// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"slices"

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
	stop   policy.Refusal // what it waits for that all share
	now    int64          // of the turn
	asking int            // of those that wait the control plane is being asked for

	model  *policy.Model
	waits  string // where workers tell each other who waits; empty: nobody needs to know
	said   mark   // by this one
	above  mark   // the highest of another one
	looked int64  // when above was looked for
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
	asks    bool           // it is to be told how long it waited
	queued  bool           // it counts as one that waits
	lacks   []lack         // that only the fleet's controller can give
	held    bool           // for nothing but that, if at all: its class does not wait

	model   *policy.Model  // whose limits apply
	until   int64          // ns: the control plane has said that it is of no use to ask before
	as      policy.Verdict // where it goes, if not where it was meant to
	why     policy.Refusal // why it does
	attempt uint32         // the id of that which it is, if it is not the first; 0: it is
}

// line gives the line for a pool; create says whether to make it.
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
	l = &line{plugin: p, queue: q, wake: queue.Never, model: model, looked: -1}
	if model != nil && p.yielding < len(p.policy.Classes) && p.policy.Mode == policy.Enforce && model.Limit.Mode == policy.Enforce {
		l.waits = p.markName(provider, model)
	}
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
		c.Classes = append(c.Classes, queue.Class{Threshold: class.Aging, Weight: class.Weight})
	}
	if p.policy.Queue.Weighted {
		c.Discipline = queue.Weighted
	}
	return c
}

// others says whether somebody waits for the pool already, here or, of a higher class, in another worker: then nobody is tried
// out of turn.
func (s *Stream) others(now int64, model *policy.Model) bool {
	p := s.plugin
	asks := model != nil && s.classIndex >= p.yielding
	if !asks && len(p.lines) == 0 {
		return false
	}
	l := p.line(s.provider, model, asks)
	return l != nil && (l.queue.Len() > 0 || asks && l.yields(now, s.classIndex, 0) != nil)
}

// stand puts a stream into the line for its pool, behind those of its class, and has the line's turn. If the stream's own comes
// in it, it goes at once; if not, it waits if its class does, or is refused.
func (s *Stream) stand(now int64, model *policy.Model, w *waiter) Action {
	l, class := s.plugin.line(s.provider, model, true), &s.class
	if l == nil {
		return s.deny(&w.refusal, &w.caller)
	}
	w.stream, w.line, w.model, w.asks = s, l, model, s.asksWhy()
	patience, expected := shareHold, int64(0)
	w.held = class.OnLimit != policy.OnLimitQueue
	if !w.held {
		patience = s.patience(class.Wait)
		if len(w.lacks) == 0 {
			expected = int64(w.refusal.Wait)
		}
	}
	v := s.vm
	v.lastID++
	var outcome queue.Outcome
	owner, parent := w.owners()
	w.handle, outcome = l.queue.Push(now, queue.Entry{
		ID: v.lastID, Class: s.classIndex, Bytes: s.bytes, Deadline: now + int64(patience),
		Cost: w.cost.In(policy.Tokens), Owner: owner, Parent: parent,
	}, expected)
	if outcome == queue.QueueFull && s.tryWithoutPlace(now, w, owner, parent) {
		return s.held()
	}
	if outcome != queue.Queued {
		if w.held && w.refusal.Reason != policy.None {
			outcome = queue.Queued // it would not have waited: the limit refuses it, not the queue
		}
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
	if s.phase == waiting && w.held && len(w.lacks) == 0 && s.take == nil {
		s.leave()
	}
	l.tell(now) // of those that stay
	if s.phase != waiting {
		return s.held()
	}
	if s.waiter == nil {
		return s.deny(w.because(queue.Queued), &w.caller)
	}
	s.offer(&w.path, &w.cost, true)
	if len(w.lacks) > 0 {
		v.tellOffers(now) // the next tick may be too late
	}
	v.countQueued(w)
	return s.held()
}

// tryWithoutPlace lets a request go for which the queue has no place, if it needs none: there is room for it in its limits, and
// nobody that waits has a better right to that.
func (s *Stream) tryWithoutPlace(now int64, w *waiter, owner, parent uint64) bool {
	l, v := w.line, s.vm
	if now < w.until || l.yields(now, s.classIndex, 0) != nil {
		return false
	}
	if !l.queue.MayPass(now, s.classIndex) {
		v.turning, v.effective = s, 0
		l.turn(now)
		v.enter(s.id)
		v.turning = nil
		if !l.queue.MayTry(now, s.classIndex, owner, parent) {
			return false
		}
	}
	d := v.ledger.Reserve(now, &w.path, w.cost, &s.reservation)
	if w.refusal = d.Refusal; d.Verdict != policy.Admit {
		return false
	}
	s.goOn(now, w)
	return true
}

// owners are whose narrower buckets the waiter has to pass: its user and its tenant, where they make a difference.
func (w *waiter) owners() (owner, parent uint64) {
	for i := range w.path.Len {
		switch s := &w.path.Steps[i]; s.Tier {
		case policy.TierUser:
			owner, parent = uint64(s.Key), uint64(s.Owner)
		case policy.TierTenant:
			if owner == 0 {
				owner = uint64(s.Key)
			}
		}
	}
	return owner, parent
}

// because is what a waiter is refused with: the limit that it met, or else the one that the line waits for.
func (w *waiter) because(o queue.Outcome) *policy.Refusal {
	r := w.refusal
	if r.Reason == policy.None {
		r = w.line.last
	}
	switch {
	case hopeless(r.Reason):
	case o == queue.QueueFull:
		r.Reason = policy.QueueFull
	case o == queue.QueueTimeout:
		r.Reason = policy.QueueTimeout
	}
	return &r
}

// leave takes a stream out of its line.
func (s *Stream) leave() {
	w := s.waiter
	if w == nil {
		return
	}
	if e, ok := w.line.queue.Get(w.handle); ok {
		delete(s.vm.waiters, e.ID)
		w.countWaited(s.vm.host.Now() - e.Arrived)
	}
	w.line.queue.Cancel(w.handle)
	s.waiter = nil
}
