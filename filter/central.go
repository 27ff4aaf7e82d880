// SPDX-License-Identifier: Apache-2.0

package filter

import (
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
	if t.w.attempt != 0 {
		t.stream.vm.host.Enter(t.w.attempt)
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
