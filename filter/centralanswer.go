// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/central"
)

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
	if w.attempt != 0 {
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
	s.countDecision(w.as, metricRequests, &w.why)
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
	case w.attempt != 0:
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
	s.offer(&w.path, &w.cost, false) // shares had room for it
	return s.deny(r, &w.caller)
}
