// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/filter/inflate"
	"github.com/weirproxy/weir/policy"
)

// ResponseHeaders takes the headers of the answer; end: there is no body. Local replies of our own come here, too.
func (s *Stream) ResponseHeaders(end bool) (a Action) {
	defer s.guardAnswer("response_headers")
	if s.phase == refused {
		return Continue
	}
	contentType, encoding := "", ""
	headers := s.vm.host.ResponseHeaders()
	for _, h := range headers {
		switch {
		case h[0] == ":status":
			s.status, _ = strconv.Atoi(h[1])
		case h[0] == "content-type":
			contentType = h[1]
		case h[0] == "content-encoding":
			encoding = h[1]
		case strings.HasPrefix(h[0], "x-weir-"), h[0] == noRetry && s.attempts.ticket != 0:
			s.vm.host.RemoveResponseHeader(h[0])
		}
	}
	s.tellInstead()
	if s.phase == sent {
		s.hear(headers)
		if s.enough() {
			s.vm.host.SetResponseHeader("x-should-retry", "false")
		}
		s.sayHint()
	}
	for _, h := range s.explained() {
		s.vm.host.SetResponseHeader(h[0], h[1])
	}
	if s.phase == sent && s.status < 300 {
		s.vm.reader.Start(&s.answer, s.call.API, s.request.Family, contentType)
		for _, h := range headers {
			s.answer.Header(h[0], h[1])
		}
		if s.answer.Reads() && inflate.Encoded(encoding) {
			s.packed = inflate.NewStream(strings.Clone(encoding)) // it is needed after this callback
		}
		s.cutUsage(contentType, encoding)
	}
	if end {
		s.settle(true)
	}
	return Continue
}

// ResponseBody takes a chunk of the answer, which passes on unchanged, but for usage that only weir asked for; end: it is
// complete.
func (s *Stream) ResponseBody(size int, end bool) (a Action) {
	defer s.guardAnswer("response_body")
	if s.phase != sent {
		return Continue
	}
	if s.refusal != nil {
		s.hearBody(size)
	}
	var chunk []byte
	if size > 0 && s.answer.Reads() {
		chunk = s.vm.host.ResponseBody(size)
		if s.packed != nil {
			s.packed.Add(chunk)
		} else {
			s.answer.Feed(chunk)
		}
	}
	if s.cutter != nil {
		s.cut(chunk, end)
	}
	if end {
		s.settle(true)
	}
	return Continue
}

// guardAnswer recovers from a panic in reading an answer, which passes on, unread from here.
func (s *Stream) guardAnswer(callback string) {
	if r := recover(); r != nil {
		s.vm.report(callback, r)
		s.answer = dialect.Answer{}
	}
}

// ResponseTrailers takes the end of an answer that has trailers.
func (s *Stream) ResponseTrailers() (a Action) {
	defer s.vm.guard("response_trailers")
	s.settle(true)
	return Continue
}

// Done takes the end of the stream, whatever it was. It is the last callback: the stream must not be used any more.
func (s *Stream) Done() {
	defer s.vm.guard("done")
	s.abandon() // who waits and goes is never sent
	s.leave()
	s.dropTicket()
	s.settle(false)
	s.writeLog()
	s.answer, s.packed, s.outline = dialect.Answer{}, nil, nil // and what they hold
	before := s.phase
	s.phase = done // also one whose memory is not kept: an answer may be on its way to it
	if v := s.vm; len(v.free) < maxFree && before != done {
		v.free = append(v.free, s)
	}
}

// settle makes the reservation count as what was used, once. complete: the answer came to its end.
func (s *Stream) settle(complete bool) {
	if s.phase != sent {
		return
	}
	s.phase = settled
	s.logged.charged = s.charge(complete)
	s.heed()
	s.noteAnswer()
	now := s.vm.host.Now()
	s.vm.ledger.Settle(now, &s.reservation, s.logged.charged)
	s.endTake(now, s.logged.charged)
}

// charge is what the call counts as. If it fails, the call counts as reserved: what it holds is given back in any case.
func (s *Stream) charge(complete bool) (actual policy.Cost) {
	actual = s.reservation.Cost
	defer s.vm.guard("charge")
	if s.packed != nil {
		s.packed.End(s.answer.Feed)
	}
	s.answer.End()
	u := s.answer.Usage()
	o := policy.Outcome{
		Ending: s.ending(complete), Input: u.Charged(), Output: u.Produced(), Uncounted: u.Uncounted(),
		InputEstimated: s.estimated(), OutputSeen: s.answer.Output(), OutputSince: s.answer.Since(),
		References: s.request.References, Pending: s.answer.Pending(),
	}
	c, source := o.Charge(actual, s.plugin.policy.Keep)
	if o.Ending == policy.Complete {
		s.heedUsage(u, source)
	}
	s.vm.countEnding(o.Ending, source)
	s.logged.ending, s.logged.source = o.Ending, source
	if !s.call.API.Metered() {
		return policy.Cost{Requests: c.Requests, Retries: min(c.Requests, actual.Retries)}
	}
	counts := policy.TokenCounts{Input: c.Input, Output: c.Output}
	if source == policy.FromUsage {
		counts = u.Counts(c.Input, c.Output)
	}
	charged := s.rating.Cost(counts)
	charged.Requests, charged.Retries = c.Requests, min(c.Requests, actual.Retries)
	return charged
}

// estimated is the input by the best that is known. What was reserved is it where it was counted, but not less than the count:
// lessons make reservations smaller, never what counts in the end without any usage.
func (s *Stream) estimated() int64 {
	byLength := dialect.ByLength(s.bytes).Input
	switch s.request.How {
	case dialect.Bound:
		if s.lesson.used > 0 {
			return max(s.lesson.used, s.lesson.raw)
		}
		return byLength
	case dialect.Length: // more of the body may have come since
		return max(byLength, s.reservation.Cost.Input)
	}
	return max(s.reservation.Cost.Input, s.lesson.raw)
}

func (s *Stream) ending(complete bool) policy.Ending {
	switch {
	case s.status == 0:
		return policy.Left
	case s.status == 413 && s.vm.host.Property("response\x00code_details") == "request_payload_too_large":
		return policy.NotSent // Envoy's own
	case s.status >= 500:
		return policy.Broken
	case s.status >= 300, s.answer.Failed():
		return policy.Rejected
	case complete, s.answer.Over():
		return policy.Complete
	}
	return policy.Cut
}
