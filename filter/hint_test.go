// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirproxy/weir/filter/filtertest"
	"github.com/weirproxy/weir/policy/tokens"
)

const hintPolicy = `{"apiVersion":"weir/v1","trust":["all"],"hints":{"header":true,"inject":true},"body":{"parse":"2KiB"},
	"providers":{"openai":{"upstream":"http://openai.test"},"anthropic":{"upstream":"http://anthropic.test"},"gemini":{"upstream":"http://gemini.test"},
		"vllm":{"upstream":"http://vllm.test","dialect":"openai"},"tool":{"upstream":"http://tool.test","dialect":"generic"}},
	"limits":{"tree":{"default":{"tokens":"4000","calls":"100","in_flight":"20"}},"tool":{"default":{"rps":"100"},"search \"x\"":{"in_flight":"1"}}}}`

// A request of a tree that has little left is told so, at the end of its messages, and the hint is paid for; nobody else is.
func TestHints(t *testing.T) {
	both(t, 2, hintPolicy, func(t *testing.T, p *filtertest.Process) {
		send := func(path, body string, tenant, tree string, headers ...[2]string) *filtertest.Exchange {
			r := request(path, tenant, body)
			if tree != "" {
				r.Headers = append(r.Headers, [2]string{"x-request-tree", tree})
			}
			r.Headers = append(r.Headers, headers...)
			return p.Worker(len(body)).Open(r)
		}
		chat := func(model string, output int) string {
			return fmt.Sprintf(`{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":"hi"}]}`, model, output)
		}
		const openai = "/openai/v1/chat/completions"
		first := send(openai, chat("gpt-4o", 3000), "a", "t")
		first.Respond(200, false, [2]string{"content-type", "application/json"}, [2]string{"x-weir-hint", "forged"})
		if strings.Contains(string(first.Body), "[weir]") || hintOf(first) != "992 tokens left for this request tree in all: keep prompts and answers short." {
			t.Fatalf("first: %s, %q", first.Body, hintOf(first))
		}
		first.Chunk([]byte(`{"usage":{"prompt_tokens":8,"completion_tokens":2992}}`), true)
		first.Close()
		const hint = "[weir] 1000 tokens left for this request tree in all: keep prompts and answers short."
		for _, row := range []struct {
			path, body, want string
			headers          [][2]string
		}{
			{openai, chat("gpt-4o", 10), `{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":"hi"},{"role":"system","content":"` + hint + `"}]}`, nil},
			{openai, `{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":"hi"},{"role":"system","content":"[weir] Old."}]}`,
				`{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":"hi"},{"role":"system","content":"` + hint + `"}]}`, nil},
			{"/openai/v1/responses", `{"model":"gpt-4o","max_output_tokens":10,"input":"hi"}`, `{"model":"gpt-4o","max_output_tokens":10,"input":[{"role":"user","content":"hi"},{"role":"developer","content":"` + hint + `"}]}`, nil},
			{"/anthropic/v1/messages", `{"model":"claude","max_tokens":10,"system":"s","messages":[]}`, `{"model":"claude","max_tokens":10,"system":[{"type":"text","text":"s"},{"type":"text","text":"` + hint + `"}],"messages":[]}`, nil},
			{"/gemini/v1beta/models/gemini-2.5-flash:generateContent", `{"systemInstruction":{"parts":[{"text":"s"}]},"generationConfig":{"maxOutputTokens":10},"contents":[]}`,
				`{"systemInstruction":{"parts":[{"text":"s"},{"text":"` + hint + `"}]},"generationConfig":{"maxOutputTokens":10},"contents":[]}`, nil},
			{"/vllm/v1/chat/completions", chat("Qwen/Qwen3-8B", 10), "", nil}, {"/tool/x", `{"messages":[{}]}`, "", nil},
			{openai, chat("gpt-4o", 10), "", [][2]string{{"authorization", "AWS4-HMAC-SHA256 x"}}}, {openai, chat("gpt-4o", 10), "", [][2]string{{"x-weir-reservation", "x"}}},
			{openai, chat("gpt-4o", 10) + strings.Repeat(" ", 2100), "", nil},
		} {
			x := send(row.path, row.body, "a", "t", row.headers...)
			want := row.want
			if want == "" {
				want = row.body
			}
			if string(x.Body) != want {
				t.Errorf("%s left as\n%s, want\n%s", row.body, x.Body, want)
			}
			if n := x.Upstream("content-length"); n != fmt.Sprint(len(x.Body)) {
				t.Errorf("content-length %s of %d", n, len(x.Body))
			}
			x.Answer(400, "{}")
		}
		for _, other := range [][2]string{{"b", "t"}, {"a", "s"}, {"a", ""}} {
			x := send(openai, chat("gpt-4o", 10), other[0], other[1])
			if string(x.Body) != chat("gpt-4o", 10) {
				t.Errorf("%v left as %s", other, x.Body)
			}
			x.Respond(200, false)
			if h := hintOf(x); h != "" {
				t.Errorf("%v was told %q", other, h)
			}
			x.Close()
		}
		p.Sleep(1e9)
		if x := send(openai, chat("gpt-4o", 1000-8-1), "a", "t"); !x.Sent || string(x.Body) != chat("gpt-4o", 1000-8-1) {
			t.Errorf("one that fits without a hint only: %+v %s", x.Reply, x.Body)
		} else {
			x.Answer(400, "{}")
		}
		p.Sleep(1e9)
		x := send(openai, `{"model":"gpt-4o","stream":true,"max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`, "a", "t")
		x.Respond(200, false, [2]string{"content-type", "text/event-stream"})
		x.Chunk([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n"), true)
		x.Close()
		p.Sleep(1e9)
		y := send(openai, chat("gpt-4o", 10), "a", "t")
		const message = 4
		if want := fmt.Sprintf("[weir] %d tokens", 1000-8-message-tokens.New(tokens.O200k).Count(hint)-1); !strings.Contains(string(y.Body), want) {
			t.Errorf("after one with a hint whose answer says no usage: %s, want %s", y.Body, want)
		}
		y.Answer(400, "{}")
	})
}

// A tool of the policy that has no room is named to all, by its name in the policy.
func TestCoolingHint(t *testing.T) {
	both(t, 1, hintPolicy, func(t *testing.T, p *filtertest.Process) {
		r := request("/tool/q", "b", "{}")
		r.Headers = append(r.Headers, [2]string{"x-tool", `search "x"`})
		if x := p.Worker(0).Open(r); !x.Sent {
			t.Fatalf("%+v", x.Reply)
		}
		r = request("/openai/v1/chat/completions", "a", `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`)
		r.Headers = append(r.Headers, [2]string{"x-request-tree", "t"})
		const want = `The tool search "x" is cooling down: do not use it for 1 second.`
		x := p.Worker(0).Open(r)
		messages := field(t, string(x.Body), "messages").([]any)
		if last := messages[len(messages)-1].(map[string]any); last["content"] != "[weir] "+want {
			t.Errorf("%s", x.Body)
		}
		x.Respond(200, false)
		if h := hintOf(x); h != want {
			t.Errorf("%q", h)
		}
		b := p.Worker(0).Open(filtertest.Request{Method: "GET", Path: "/.weir/budget", Headers: [][2]string{{"x-tenant", "a"}, {"x-request-tree", "t"}}})
		if hints := field(t, b.Reply.Body, "hints").([]any); len(hints) != 1 || hints[0] != want {
			t.Errorf("%s", b.Reply.Body)
		}
		if c := field(t, b.Reply.Body, "cooling").([]any); len(c) != 1 || c[0].(map[string]any)["tool"] != `search "x"` {
			t.Errorf("%s", b.Reply.Body)
		}
	})
}

func hintOf(x *filtertest.Exchange) string {
	for _, h := range x.AnswerHeaders() {
		if h[0] == "x-weir-hint" {
			return h[1]
		}
	}
	return ""
}
