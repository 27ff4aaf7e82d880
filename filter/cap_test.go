// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirproxy/weir/filter/filtertest"
)

const capPolicy = `{"apiVersion":"weir/v1","trust":["all"],"output":{"default":"700","cap":%q},"providers":{"openai":{"upstream":"http://openai.test",
	"models":{"small":{"tpm":"100000","max_output":"50"},"*":{"tpm":"100000"}}}}}`

// With output.cap a request that declares no output says the default, or what the model can at most; all others leave as they came.
func TestOutputCap(t *testing.T) {
	for word, rows := range map[string][]struct{ path, body, want string }{
		"none": {{"chat/completions", `{"model":"gpt-4o","messages":[]}`, ""}},
		"default": {
			{"chat/completions", `{"model":"gpt-4o","messages":[]}`, `"max_completion_tokens":700`},
			{"chat/completions", `{"model":"small","messages":[]}`, `"max_completion_tokens":50`},
			{"chat/completions", `{"model":"gpt-4o","max_tokens":5000,"messages":[]}`, ""},
			{"responses", `{"model":"gpt-4o","max_output_tokens":null,"input":"hi"}`, `"max_output_tokens":700`},
			{"embeddings", `{"model":"gpt-4o","input":"hi"}`, ""},
		},
	} {
		both(t, 1, fmt.Sprintf(capPolicy, word), func(t *testing.T, p *filtertest.Process) {
			for _, row := range rows {
				x := p.Worker(0).Open(request("/openai/v1/"+row.path, "t", row.body))
				if !x.Sent || row.want == "" && string(x.Body) != row.body || !strings.Contains(string(x.Body), row.want) {
					t.Errorf("cap: %s, %s left as %s", word, row.body, x.Body)
				}
				if n := x.Upstream("content-length"); n != fmt.Sprint(len(x.Body)) {
					t.Errorf("%s: content-length %s, the body has %d", row.body, n, len(x.Body))
				}
			}
		})
	}
}
