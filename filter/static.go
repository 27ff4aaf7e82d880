// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// static answers with a fixed reply, if it has the form of the API that was asked.
func (s *Stream) static(to *policy.StaticSpec, q *dialect.Request, why *policy.Refusal) (Action, bool) {
	kind, body := "application/json", to.Reply
	switch {
	case to.API != s.call.API.String():
		return Pause, false
	case q.Stream && s.call.API == dialect.Generate && !strings.Contains(s.path, "alt=sse"):
		body = "[" + body + "]"
	case q.Stream:
		kind, body = "text/event-stream", to.Stream
	}
	if body == "" {
		return Pause, false
	}
	s.phase, s.verdict, s.status, s.logged.refusal = refused, policy.Degraded, 200, *why
	s.countDecision(policy.Degraded, metricRequests, why)
	headers := [][2]string{{"content-type", kind}, {"x-weir-decision", policy.Degraded.String()}}
	s.vm.host.Reply(200, append(headers, s.explained()...), []byte(body))
	s.dropHeaders()
	return Pause, true
}

// tellInstead tells the caller in headers of the answer where its request went.
func (s *Stream) tellInstead() {
	if s.verdict == policy.Admit {
		return
	}
	h := s.vm.host
	h.SetResponseHeader("x-weir-decision", s.verdict.String())
	if s.model != "" && policy.Printable(s.model) {
		h.SetResponseHeader("x-weir-model", s.model)
	}
	if s.verdict == policy.Spilled {
		h.SetResponseHeader("x-weir-provider", s.provider.Name)
	}
}
