// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"encoding/binary"
	"strconv"
	"time"
	"unsafe"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/feedback"
)

// Envoy may send a request again, and only filters of the cluster see that. So weir's filter stands there, too, in the role of an
// attempt: in the same VM, for both have the same code and the same vm_id, so that it finds the stream in its memory. They know each
// other by a number in the stream's filter state, which no caller can write and which never leaves: headers would not do,
// for all attempts send the same ones, and what the first has taken out the second does not find.

// AttemptConfig is the configuration of the filter in a cluster. It has no policy, so that a new one changes no cluster.
const AttemptConfig = `{"role":"attempt"}`

// ticketState is the name of the number in the stream's state.
const ticketState = "weir.ticket"

// attempts are what a stream knows of its attempts.
type attempts struct {
	ticket  uint64 // 0: nobody counts them
	n       int
	status  int // of the last one, 0 if it has none yet
	verdict feedback.Verdict
}

// issueTicket lets the stream's attempts find it.
func (s *Stream) issueTicket() {
	if !s.vm.attempts || !s.provider.Attempts {
		return
	}
	if s.attempts.ticket = s.vm.tickets.issue(s); s.attempts.ticket == 0 {
		return
	}
	binary.LittleEndian.PutUint64(s.vm.ticket[:], s.attempts.ticket)
	s.vm.host.SetProperty(ticketState, unsafe.String(&s.vm.ticket[0], len(s.vm.ticket)))
}

// dropTicket ends that.
func (s *Stream) dropTicket() {
	if s.attempts.ticket != 0 {
		s.vm.tickets.drop(s.attempts.ticket)
		s.attempts.ticket = 0
	}
}

// An Attempt is one of the times that Envoy sends a request.
type Attempt struct {
	vm     *VM
	id     uint32  // the host's
	stream *Stream // nil: weir knows nothing of it
}

// Attempts says whether the plugin is one that counts attempts.
func (p *Plugin) Attempts() bool { return p.policy == nil }

// NewAttempt begins an attempt, which the host knows by its id.
func (p *Plugin) NewAttempt(id uint32) Attempt { return Attempt{vm: p.vm, id: id} }

// RequestHeaders lets the attempt go, if it is the first, or if it is admitted as any request is.
func (a *Attempt) RequestHeaders() (action Action) {
	defer func() {
		if r := recover(); r != nil {
			a.vm.report("attempt_request", r)
			action = a.refuse()
		}
	}()
	ticket := a.vm.host.Property(ticketState)
	if ticket == "" {
		return Continue // it did not come through weir
	}
	if len(ticket) == 8 {
		a.stream = a.vm.tickets.find(binary.LittleEndian.Uint64([]byte(ticket)))
	}
	if a.stream == nil {
		return a.orphan()
	}
	if a.stream.attempts.n++; a.stream.attempts.n == 1 {
		return Continue
	}
	return a.stream.again(a)
}

// RequestBody takes a piece of the body, or the trailers, which wait with their headers.
func (a *Attempt) RequestBody() Action {
	if s := a.stream; s != nil && s.phase == waiting {
		return HoldBack
	}
	return Continue
}

// orphan takes an attempt whose stream is gone with its VM. The first one was admitted; another nobody can charge.
func (a *Attempt) orphan() Action {
	n := a.vm.host.Property("upstream\x00request_attempt_count")
	if len(n) == 8 && n[0] == 1 {
		return Continue
	}
	return a.refuse()
}

// refuse answers an attempt that cannot be charged. It must not panic.
func (a *Attempt) refuse() (action Action) {
	action = Pause
	defer func() { _ = recover() }()
	a.vm.host.Reply(policy.Internal.Status(), [][2]string{{"x-weir-reason", policy.Internal.String()}}, nil)
	return Pause
}

// ResponseHeaders takes the answer to the attempt. Envoy decides by it whether there is another.
func (a *Attempt) ResponseHeaders() Action {
	defer a.vm.guard("attempt_response")
	s := a.stream
	if s == nil || s.phase != sent {
		return Continue
	}
	h := a.vm.host
	s.attempts.status, _ = strconv.Atoi(h.ResponseHeader(":status"))
	if s.attempts.status < 400 {
		return Continue // most are, and their other headers are read where the answer is
	}
	headers, now := h.ResponseHeaders(), h.Now()
	v := feedback.Classify(feedback.Reply{Status: s.attempts.status, Headers: headers, Wall: h.Wall()})
	s.attempts.verdict = v
	if s.pool != nil && v.Told {
		s.pool.refused(a.vm, now, s.reservation.At(), v, false)
	}
	if !v.Retry || v.Wait > maxRetryWait || s.repeat {
		h.SetResponseHeader(noRetry, "true")
	}
	return Continue
}

// enough says whether the answer is the last one that Envoy got of several: it is not for the caller's library to start anew.
func (s *Stream) enough() bool { return s.attempts.n > 1 && s.status >= 400 }

const (
	// noRetry keeps Envoy from sending again what was answered with it, unless its retry_on says envoy-ratelimited.
	noRetry = "x-envoy-ratelimited"

	// maxRetryWait is how long Envoy may keep a caller waiting for its next attempt. Callers know better what to do meanwhile.
	maxRetryWait = int64(10 * time.Second)
)

// again is for an attempt after the first. The one before counts as what has become of it, and this one as any other request: it
// takes the same from the same buckets, and a retry from the tree's.
func (s *Stream) again(attempt *Attempt) (a Action) {
	defer s.guardRequest("again", &a)
	w := waiter{path: *s.reservation.Path(), cost: s.reservation.Cost}
	if s.take != nil {
		w = *s.take.w
	}
	switch {
	case s.phase == sent:
		s.endAttempt()
	case s.take != nil && s.take.w.attempt != 0: // that one has gone while it was asked for
		s.abandon()
	default:
		return Continue
	}
	s.phase = reading // what fails from here on is refused
	if s.plugin.policy.Uses(policy.TierTree) {
		w.cost.Retries = 1
	}
	s.logged.attempt = max(s.logged.attempt, 1) + 1
	s.meetGate(&w.path)
	now := s.vm.host.Now()
	d := s.vm.ledger.Reserve(now, &w.path, w.cost, &s.reservation)
	s.noteShadow(&d)
	if d.Verdict == policy.Deny {
		return s.turnDown(&d.Refusal, "") // its body is on the way: it goes nowhere else
	}
	if len(w.path.Central) > 0 {
		w.attempt = attempt.id
		if a = min(s.proceed(now, &w), Pause); s.phase == waiting {
			a = Pause // the attempt; the rest of the body goes on to where Envoy holds it for that
		}
		return a
	}
	s.phase = sent
	s.vm.countRetry()
	s.vm.countAdmitted()
	return Continue
}

// endAttempt makes the attempt before count as what has become of it.
func (s *Stream) endAttempt() {
	s.phase = reading // what fails from here on is refused
	now := s.vm.host.Now()
	if s.status = s.attempts.status; s.status == 0 {
		s.status = 503 // it came to nothing before there was an answer
	}
	at, charged := s.reservation.At(), s.charge(false)
	s.vm.ledger.Settle(now, &s.reservation, charged) // first: what fails from here on gives back no more
	s.endTake(now, charged)
	if v := s.attempts.verdict; s.pool != nil && v.Class != feedback.OK {
		s.vm.countRefusal(v.Class)
		v.Told = false // it is closed for that already
		s.pool.refused(s.vm, now, at, v, true)
	}
	s.status, s.attempts.status, s.attempts.verdict = 0, 0, feedback.Verdict{}
}
