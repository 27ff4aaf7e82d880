// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/central"
	"github.com/weirproxy/weir/policy/fleet"
)

// A call with limits of scope central asks the control plane for them, once all limits that this Envoy holds have admitted it, and
// while its stream is paused. What was refused gives everything back here; what was admitted is settled there, too, by its id; who
// gets no answer is held to the floor.

// A take is what a stream asks, or has got, the control plane for.
type take struct {
	stream *Stream // nil: it is gone, or has given up
	w      *waiter
	id     central.ID
	asked  int64
	again  bool // it was asked twice, for the first time came to nothing at once
	status int  // of the answer; 0: there was none
	open   bool // nobody has answered yet
	there  bool // the control plane counts it: it has to be told what it cost
	floor  policy.Reservation
}

// centrals are what a VM knows of the control plane's limits.
type centrals struct {
	takes map[*take]struct{} // that are open
	owed  []owed
	mute  int64 // ns: until then nobody is asked, for there was no answer
	down  bool  // the last one that was asked gave none
}

const (
	takeTimeout = 2 * time.Second
	takeLate    = takeTimeout + 200*time.Millisecond // no answer comes any more

	// takeLease is how long a call may take before it counts as what was reserved; shortLease the same for calls in flight: theirs
	// are free again only then, if the Envoy has died.
	takeLease  = central.MaxLease
	shortLease = 10 * time.Minute

	// muteFor is how long nobody is asked after there was no answer; then the next call tries.
	muteFor = int64(time.Second)

	centralType = "application/octet-stream"
)

// proceed lets a request go that the limits held here have admitted, if the central ones do, too. w is what it takes to try again.
func (s *Stream) proceed(now int64, w *waiter) Action {
	w.stream, w.cost = s, s.reservation.Cost
	t := &take{stream: s, w: w, asked: now}
	s.take, s.phase = t, waiting
	if now < s.vm.centrals.mute || !s.vm.host.Random(t.id[:]) {
		return s.onFloor(now)
	}
	t.open, t.there = true, true
	s.vm.centrals.takes[t] = struct{}{}
	if s.waiter != nil {
		w.line.asking++
	}
	if !t.post() {
		return t.failed(now)
	}
	return s.held()
}

// post asks.
func (t *take) post() bool {
	s, w, v := t.stream, t.w, t.stream.vm
	m := central.Take{
		ID: t.id, Node: v.nodeName(), Lease: takeLease, Provider: s.provider.Name, Caller: w.caller, Cost: w.cost,
	}
	if w.model != nil {
		m.Model = w.model.Pattern
	}
	for i := range w.path.Central {
		m.Tiers = m.Tiers.With(w.path.Central[i].Tier)
		if w.path.Central[i].Limit.InFlight > 0 {
			m.Lease = shortLease
		}
	}
	return v.host.Post(fleet.ControlCluster, central.TakePath, centralType, m.Append(nil), takeTimeout, t.answered)
}

// answered takes the answer; status 0: there was none.
func (t *take) answered(status int, body []byte) {
	s := t.stream
	if s == nil || !t.open {
		return // it has been given back, or is going to be
	}
	v := s.vm
	v.turning, v.effective = nil, 0
	t.enter()
	t.resolve(func(now int64) Action {
		var a central.Answer
		if t.status = status; status == 200 && a.Decode(body) == nil && (a.Verdict == policy.Admit || a.Refusal.Reason != policy.None) {
			return t.heed(now, &a)
		}
		t.there = status/100 != 4 && status != 501 // then it was not even tried
		if t.there && !t.again && now-t.asked < int64(time.Second) {
			if t.again, t.asked = true, now; t.post() {
				return Pause
			}
		}
		return t.failed(now)
	})
}

// enter makes host calls be about the stream, or about the attempt that Envoy makes for it.
func (t *take) enter() {
	if t.w.attempt != nil {
		t.stream.vm.host.Enter(t.w.attempt.id)
		return
	}
	t.stream.vm.enter(t.stream.id)
}

// resolve does what ends the wait of a paused stream. A panic ends the stream as one in its own callback does.
func (t *take) resolve(what func(now int64) Action) {
	s := t.stream
	a := Action(Pause)
	func() {
		defer s.guardRequest("central", &a)
		a = what(s.vm.host.Now())
	}()
	if a == Continue {
		s.vm.host.Resume()
	}
}

// close ends the question.
func (t *take) close() {
	t.open = false
	delete(t.stream.vm.centrals.takes, t)
	if s := t.stream; s.waiter != nil && s.waiter == t.w {
		t.w.line.asking--
	}
}

// heed does what the control plane says.
func (t *take) heed(now int64, a *central.Answer) Action {
	s := t.stream
	t.close()
	s.vm.noteCentral(true, t.status)
	s.noteShadow(&policy.Decision{Shadow: a.Shadow})
	if a.Verdict == policy.Deny {
		t.there = false
		s.vm.countTake(takeRefused)
		return s.refusedCentrally(now, &a.Refusal)
	}
	s.vm.countTake(takeAdmitted)
	floor := t.w.path.Floor() // it counts there, too: who falls to its floor has used that
	floor.Shadow = true
	s.vm.ledger.Reserve(now, &floor, t.w.cost, &t.floor)
	return s.admittedCentrally(now)
}

// failed is for a question that nobody has answered.
func (t *take) failed(now int64) Action {
	s := t.stream
	t.close()
	s.vm.centrals.mute = now + muteFor
	s.vm.noteCentral(false, t.status)
	s.vm.countTake(takeFailed)
	if t.there { // nobody knows
		s.vm.owe(now, t.id, policy.Cost{})
		t.there = false
	}
	return s.onFloor(now)
}

// onFloor takes from the floor what nobody can be asked for.
func (s *Stream) onFloor(now int64) Action {
	t := s.take
	w := t.w
	none := w.path.WithoutFloor(&w.cost)
	if none.Reason != policy.None {
		return s.refusedCentrally(now, &none)
	}
	floor := w.path.Floor()
	d := s.vm.ledger.Reserve(now, &floor, w.cost, &t.floor)
	s.noteShadow(&d)
	if d.Verdict == policy.Deny {
		none = w.path.NoFloor(&d.Refusal)
		return s.refusedCentrally(now, &none)
	}
	s.vm.countTake(takeFloor)
	return s.admittedCentrally(now)
}

// admittedCentrally lets the request go.
func (s *Stream) admittedCentrally(now int64) Action {
	w := s.take.w
	if w.attempt != nil {
		s.phase = sent
		s.vm.countRetry()
		s.vm.countAdmitted()
		return Continue
	}
	if s.waiter != nil {
		e, _ := w.line.queue.Get(w.handle)
		s.leave()
		w.line.queue.Passed(e.Class, e.Cost)
		w.waited(now - e.Arrived)
	}
	return s.sendOn(w)
}

// goOn lets a waiter go that the limits held here admit, if the central ones do, too.
func (s *Stream) goOn(now int64, w *waiter) Action {
	if len(w.path.Central) > 0 {
		w.request.Model = "" // it lies in the body's memory
		return s.proceed(now, w)
	}
	return s.sendOn(w)
}

// sendOn lets a waiter go that all limits admit.
func (s *Stream) sendOn(w *waiter) Action {
	if w.as == policy.Admit {
		s.vm.countAdmitted()
		return s.send(w.request)
	}
	s.vm.countDecision(w.as, metricRequests, &w.why)
	s.logged.refusal = w.why
	if s.model != "" {
		s.logged.model = s.model
	}
	return s.send(w.request)
}

// refusedCentrally gives back what is held here, and has the request wait, go elsewhere or be refused, as a limit held here would.
func (s *Stream) refusedCentrally(now int64, r *policy.Refusal) Action {
	w := s.take.w
	s.dropTake(now)
	w.refusal = *r
	w.until = now + min(max(int64(r.Wait), int64(10*time.Millisecond)), int64(time.Minute))
	w.until += rand.Int64N((w.until-now)/10 + 1) // others have been told the same
	queues := s.class.OnLimit == policy.OnLimitQueue && mayWait(r.Reason)
	switch {
	case w.attempt != nil:
		return s.turnDown(r, "") // its body is on the way: it goes nowhere else
	case w.as != policy.Admit: // what it was refused for in the first place
		return s.turnDown(&w.why, unnamed(&w.caller, w.why.Tier))
	case s.waiter != nil && queues:
		return Pause // it keeps its place
	case s.waiter != nil:
		e, _ := w.line.queue.Get(w.handle)
		s.leave()
		w.waited(now - e.Arrived)
	case queues:
		s.phase, s.hinted.text = reading, "" // it would not be true any more
		return s.stand(now, w.model, w)
	}
	s.phase = reading
	s.offer(now, &w.path, &w.cost, false) // shares had room for it
	return s.deny(r, &w.caller)
}

// dropTake gives back what a stream holds here and has asked for, if it was not sent.
func (s *Stream) dropTake(now int64) {
	if s.take == nil {
		return
	}
	s.vm.ledger.Settle(now, &s.reservation, policy.Cost{})
	s.endTake(now, policy.Cost{})
}

// endTake makes the take count as what the call has used, once.
func (s *Stream) endTake(now int64, actual policy.Cost) {
	t := s.take
	if t == nil {
		return
	}
	s.take = nil
	if t.open {
		t.close()
	}
	t.stream = nil
	s.vm.ledger.Settle(now, &t.floor, actual)
	if t.there {
		t.there = false
		s.vm.owe(now, t.id, actual)
	}
}

// abandon is for a stream that goes before it was sent.
func (s *Stream) abandon() {
	if s.take == nil || s.phase != waiting {
		return
	}
	s.dropTake(s.vm.host.Now())
}

// lateTakes ends what was asked too long ago: its answer was lost with the one whose callback it was asked in. It must be called in
// a tick, with no stream entered.
func (v *VM) lateTakes(now int64) {
	for t := range v.centrals.takes {
		if now-t.asked < int64(takeLate) {
			continue
		}
		s := t.stream
		if t.w.attempt != nil { // it is gone, or would have had its answer; the next one finds what it needs here
			t.close()
			s.vm.ledger.Settle(now, &s.reservation, policy.Cost{})
			v.owe(now, t.id, policy.Cost{})
			t.there = false
			continue
		}
		v.turning, v.effective = nil, 0
		t.enter()
		t.resolve(t.failed)
		v.turning, v.effective = nil, s.id
	}
}
