// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// rewritable says whether weir may change the body: one that is compressed, signed, or was not read to its end leaves as it is.
func (s *Stream) rewritable() bool {
	return !s.partial && s.bytes <= s.plugin.policy.Parse && s.header("content-encoding") == "" && !strings.HasPrefix(s.header("authorization"), "AWS4-")
}

// noteCap notes the most output that a request may have which declares none, if the policy wants it to say so.
func (s *Stream) noteCap(m *policy.Model, q *dialect.Request) {
	s.cap = 0
	if q.How != dialect.Length && s.call.API.Metered() && s.method == "POST" && s.rewritable() {
		s.cap = s.plugin.policy.OutputCap(m, q.Output)
	}
}

// rewrite makes all changes to the body that is about to leave, one after the other.
func (s *Stream) rewrite() {
	if s.moved { // of a change by a filter of ABI 0.2.0 Envoy chooses the route anew; later ones would have to ask for it
		s.vm.host.SetRequestHeader(":path", s.path)
	}
	if !s.asks && s.cap == 0 && s.body == nil && !s.hinted.edits {
		return
	}
	h := s.vm.host
	body, changed := s.body, s.body != nil
	if s.body = nil; !changed {
		body = h.RequestBody(0, int(s.bytes))
	}
	if s.asks {
		if out := dialect.AskForUsage(body); out != nil {
			body, changed = out, true
		} else {
			s.asks = false
		}
	}
	if s.cap > 0 {
		if out := dialect.SetCap(s.dialect, s.call.API, body, s.cap); out != nil {
			body, changed = out, true
		}
	}
	if s.hinted.edits {
		if out := dialect.InjectHint(s.call.API, body, s.hinted.text); out != nil {
			body, changed = out, true
		}
	}
	if !changed {
		return
	}
	h.SetRequestBody(body)
	if s.length >= 0 {
		h.SetRequestHeader("content-length", strconv.Itoa(len(body)))
	}
}
