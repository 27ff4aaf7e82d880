// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirproxy/weir/filter/filtertest"
)

const askPolicy = `{"apiVersion":"weir/v1","trust":["all"],"providers":{"openai":{"upstream":"http://openai.test","stream":{"include_usage":"add"}}},
	"limits":{"tenant":{"default":{"tpm":"100000","burst":"100%"}}}}`

// A stream that would not say its usage is asked to, with the right length; the caller gets what it would have got.
func TestUsageIsAskedFor(t *testing.T) {
	const content = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}],\"usage\":null}\n\n"
	const usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":500}}\n\n"
	const done = "data: [DONE]\n\n"
	both(t, 1, askPolicy, func(t *testing.T, p *filtertest.Process) {
		for i, row := range []struct {
			body         string
			headers      [][2]string
			asked, taken bool
		}{
			{`{"model":"gpt-4o","stream":true,"max_tokens":1000,"messages":[]}`, nil, true, true},
			{`{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":false},"messages":[]}`, nil, true, true},
			{`{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"messages":[]}`, nil, false, false},
			{`{"model":"gpt-4o","messages":[]}`, nil, false, false},
			{`{"model":"gpt-4o","stream":true,"messages":[]}`, [][2]string{{"authorization", "AWS4-HMAC-SHA256 x"}}, false, false},
		} {
			tenant := fmt.Sprint("t", i)
			r := request("/openai/v1/chat/completions", tenant, row.body)
			r.Headers = append(r.Headers, row.headers...)
			x := p.Worker(0).Open(r)
			if asked := string(x.Body) != row.body; asked != row.asked || asked && !strings.Contains(string(x.Body), `"include_usage":true`) {
				t.Errorf("%s left as %s", row.body, x.Body)
			}
			if n := x.Upstream("content-length"); n != fmt.Sprint(len(x.Body)) {
				t.Errorf("%s: content-length %s, the body has %d", row.body, n, len(x.Body))
			}
			x.Respond(200, false, [2]string{"content-type", "text/event-stream"})
			for rest := content + content + usage + done; rest != ""; {
				n := min(len(rest), 40)
				x.Chunk([]byte(rest[:n]), n == len(rest))
				rest = rest[n:]
			}
			x.Close()
			want := content + content + usage + done
			if row.taken {
				want = content + content + done
			}
			if string(x.Received) != want {
				t.Errorf("%s: the caller got %q", row.body, x.Received)
			}
			if got := used(t, p, tenant); got != 509 {
				t.Errorf("%s: %d tokens count", row.body, got)
			}
		}
	})
}
