// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"bytes"
	"strings"

	"github.com/weirproxy/weir/dialect"
)

// mayAsk says whether a request is a stream of OpenAI's kind whose answer would not say its usage, and the policy wants it to
// be asked.
func (s *Stream) mayAsk(q *dialect.Request) bool {
	return s.provider.AddUsage && s.dialect == dialect.OpenAI && s.method == "POST" && q.Stream && !q.IncludeUsage &&
		(s.call.API == dialect.Chat || s.call.API == dialect.Completions) && s.rewritable()
}

// cutUsage begins to take the usage out of an answer that says it because weir asked.
func (s *Stream) cutUsage(contentType, encoding string) {
	if s.asks && strings.HasPrefix(strings.ToLower(contentType), "text/event-stream") && (encoding == "" || encoding == "identity") {
		s.cutter = new(dialect.UsageCutter)
		s.vm.host.RemoveResponseHeader("content-length")
	}
}

// cut takes it out of a chunk that was read.
func (s *Stream) cut(chunk []byte, end bool) {
	if out := s.cutter.Cut(chunk, end); !bytes.Equal(out, chunk) {
		s.vm.host.SetResponseBody(out)
	}
}
