// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

const treePolicy = `{"apiVersion":"weir/v1","trust":["all"],"providers":{"openai":{"upstream":"http://openai.test"},"tool":{"upstream":"http://tool.test","dialect":"generic"}},
	"limits":{"tree":{"default":{"tokens":"1000","calls":"6","retries":"2","in_flight":"2","ttl":"10m"}}}}`

// All that one request brings about draws on one budget, LLM calls and tools alike, and retries of any kind on one of their own;
// who belongs to no tree has none.
func TestTrees(t *testing.T) {
	both(t, 2, treePolicy, func(t *testing.T, p *filtertest.Process) {
		turn := 0
		ask := func(path, tree string, headers ...[2]string) *filtertest.Exchange {
			r := request(path, "a", `{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`)
			if tree != "" {
				r.Headers = append(r.Headers, [2]string{"x-request-tree", tree})
			}
			r.Headers = append(r.Headers, headers...)
			turn++
			return p.Worker(turn % 2).Open(r)
		}
		end := func(x *filtertest.Exchange) {
			if x.Sent {
				x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
			}
			p.Sleep(30 * time.Millisecond)
		}
		reason := func(x *filtertest.Exchange) string {
			if x.Reply == nil {
				return ""
			}
			return x.Reply.Headers.Get("x-weir-reason")
		}
		const chat, tool = "/openai/v1/chat/completions", "/tool/search"
		a, b := ask(chat, "t"), ask(tool, "t")
		if x := ask(chat, "t"); reason(x) != "limit_exceeded" || x.Reply.Headers.Get("x-weir-tier") != "tree" {
			t.Errorf("a third at once: %+v", x.Reply)
		}
		end(a)
		end(b)
		for i, h := range [][2]string{{"x-stainless-retry-count", "1"}, {"x-weir-retry", "1"}} {
			if x := ask(chat, "t", h); !x.Sent || x.Upstream("x-weir-retry") != "" {
				t.Errorf("retry %d: %+v", i, x.Reply)
			} else {
				end(x)
			}
		}
		if x := ask(chat, "t", [2]string{"x-envoy-attempt-count", "3"}); reason(x) != "retry_budget_exhausted" || x.Reply.Status != 429 ||
			x.Reply.Headers.Get("x-should-retry") != "false" || x.Reply.Headers.Get("retry-after") != "" {
			t.Errorf("a third retry: %+v", x.Reply)
		}
		for range 2 {
			end(ask(chat, "t", [2]string{"x-stainless-retry-count", "0"}))
		}
		if x := ask(tool, "t"); reason(x) != "quota_exhausted" || x.Reply.Headers.Get("x-weir-dimension") != "calls" {
			t.Errorf("the seventh call: %+v", x.Reply)
		}
		for range 9 {
			if x := ask(chat, ""); !x.Sent {
				t.Errorf("of no tree: %+v", x.Reply)
			}
			if x := ask(tool, "other"); x.Sent {
				x.Answer(200, "{}")
			}
		}
		if x := ask(chat, "big", [2]string{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}); !x.Sent {
			t.Errorf("%+v", x.Reply)
		}
		p.Sleep(11 * time.Minute)
		if x := ask(chat, "t"); !x.Sent {
			t.Errorf("after the tree's time: %+v", x.Reply)
		}
	})
}
