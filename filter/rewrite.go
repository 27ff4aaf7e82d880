// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"strings"

	"github.com/weirproxy/weir/dialect"
)

// rewritable says whether weir may change the body: one that is compressed, signed, or not all there leaves as it is.
func (s *Stream) rewritable() bool {
	return !s.partial && s.header("content-encoding") == "" && !strings.HasPrefix(s.header("authorization"), "AWS4-")
}

// rewrite makes all changes to the body that is about to leave, one after the other.
func (s *Stream) rewrite() {
	if !s.asks && !s.hinted.edits {
		return
	}
	h := s.vm.host
	body := h.RequestBody(int(s.bytes))
	changed := false
	if s.asks {
		if out := dialect.AskForUsage(body); out != nil {
			body, changed = out, true
		} else {
			s.asks = false
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
