// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/filter/inflate"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/feedback"
	"github.com/weirproxy/weir/policy/tokens"
)

// A phase is how far a stream has come. It only ever moves on.
type phase uint8

const (
	reading phase = iota // headers are held, the body is being read
	waiting              // held until its turn comes
	refused              // answered here: it never leaves
	passing              // sent, and nothing is held for it
	sent                 // sent, with a reservation
	settled              // the reservation is settled
	done                 // all is over
)

// A Stream is one request and its answer.
type Stream struct {
	plugin *Plugin
	vm     *VM
	phase  phase

	familyOf  func(model string) tokens.Family // family, made once
	headers   [][2]string
	method    string
	path      string
	provider  *policy.Provider
	dialect   dialect.Dialect
	call      dialect.Call
	identity  uint32 // which of the identity headers came
	doubled   bool   // one of them came twice
	branch    bool   // it says that it was reserved
	repeat    bool   // the caller has sent it before
	unmetered bool   // the policy lets the path pass uncounted
	length    int64  // the body's, as declared; -1 if it is not
	bytes     int64  // of the body that have come

	reservation policy.Reservation
	rating      policy.Rating
	request     dialect.Request
	answer      dialect.Answer
	packed      *inflate.Stream // the answer, if it is compressed
	lesson      lesson
	status      int

	offered bool                        // it has been counted what it asks for
	buckets [policy.NumTiers]policy.Key // of which tiers
	rates   uint64                      // of providers, that were in force when it was sent

	pool        *pool            // of the model
	heard       feedback.Verdict // on the answer's headers
	refusal     [][2]string      // headers of an answer that refuses
	refusalBody []byte           // the beginning of its body
	attempts    attempts

	id         uint32 // the host's
	class      policy.Class
	classIndex int
	waiter     *waiter // while it waits
	take       *take   // what it asks the control plane for, or has from it
	queued     int64   // ns that it waited, if that is to be said
	why        string  // what it met, likewise

	partial bool // its body was not complete when it was decided

	outline *dialect.Outline // of a body that is longer than what is read of it; nil: nothing behind that makes a difference
	walked  int64            // bytes of the body that are in it
	told    bool             // what is read of the body says what decides
	limited *policy.Model    // what the body's model is held to

	verdict policy.Verdict  // where it went, if not where it was meant to
	model   string          // its model there
	moved   bool            // its path has changed
	from    dialect.Dialect // where it went from, if that speaks another
	fromAPI dialect.API
	cap     int64  // most output tokens, to be written into the body; 0: none
	body    []byte // as it leaves, until it does; nil: it has not changed

	asks   bool                 // weir asked for usage, and the caller did not
	cutter *dialect.UsageCutter // takes it out again

	logged logged

	endpoint endpoint // of weir itself, that is asked for
	hinted   hinted
}

// NewStream begins a stream, which the host knows by its id. Its memory is that of one that is done, if there is one.
func (p *Plugin) NewStream(id uint32) *Stream {
	v := p.vm
	if n := len(v.free); n > 0 {
		s := v.free[n-1]
		v.free = v.free[:n-1]
		headers, family := s.headers, s.familyOf
		*s = Stream{} // where it is: not made elsewhere and copied
		s.plugin, s.vm, s.id, s.headers, s.familyOf = p, v, id, headers, family
		return s
	}
	s := &Stream{plugin: p, vm: v, id: id}
	s.familyOf = s.family
	return s
}

// dropHeaders forgets the headers, which nobody needs any more.
func (s *Stream) dropHeaders() {
	clear(s.headers)
	s.headers = s.headers[:0]
}

// maxFree bounds the streams that are kept for another use.
const maxFree = 256

// RequestHeaders takes the headers; end: there is no body.
func (s *Stream) RequestHeaders(end bool) (a Action) {
	defer s.guardRequest("request_headers", &a)
	s.headers = s.vm.host.RequestHeaders(s.headers)
	path := s.scanHeaders()
	s.path = path
	s.noteHeaders()
	if s.endpoint = endpointOf(path); s.endpoint != noEndpoint {
		return s.openEndpoint(end)
	}
	if s.plugin.policy.Mode == policy.Off {
		return s.admit(passing)
	}
	var rest string
	if s.provider, rest = s.plugin.policy.ProviderOf(path); s.provider == nil {
		return s.refuse(policy.UnknownPrefix, s.plugin.prefixes())
	}
	s.dialect = s.plugin.providers[s.provider]
	s.call = s.callOf(rest)
	if reason := s.objection(rest); reason != policy.None {
		if s.plugin.policy.Mode != policy.Shadow {
			return s.refuse(reason, "")
		}
		s.countDecision(policy.Deny, metricShadow, &policy.Refusal{Reason: reason})
	}
	if end || !s.call.API.Metered() {
		return min(s.decide(dialect.Request{}, nil), Pause)
	}
	return Pause
}

// RequestBody takes the body up to size bytes; end: it is complete.
func (s *Stream) RequestBody(size int, end bool) (a Action) {
	defer s.guardRequest("request_body", &a)
	if s.phase != reading {
		s.bytes += int64(size) // a chunk
		if s.outline != nil && (s.phase == sent || s.phase == waiting) {
			return s.follow(size, end)
		}
		return s.held()
	}
	s.bytes = int64(size) // all that is buffered
	if long := s.bytes > s.plugin.policy.Parse; long && s.holds(end) || !long && !end {
		return Pause
	}
	return s.decideBody(end)
}

// RequestTrailers takes the end of a body that has trailers, which never says that it is complete.
func (s *Stream) RequestTrailers() (a Action) {
	defer s.guardRequest("request_trailers", &a)
	if s.phase != reading {
		s.outline = nil // nothing more comes
		return min(s.held(), Pause)
	}
	return min(s.decideBody(true), Pause)
}

// held is what becomes of a body that goes on coming after the decision. Of one that was not complete then no more comes while
// it waits than Envoy buffers anyway.
func (s *Stream) held() Action {
	switch {
	case s.phase == waiting && s.take != nil && s.take.w.attempt != 0: // that waits, and Envoy holds what comes for it
		return Continue
	case s.phase == waiting && (s.partial || s.take != nil && !s.call.API.Metered()):
		return HoldBack
	case s.phase == refused, s.phase == waiting:
		return Pause
	}
	return Continue
}
