// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const degradePolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai:
    upstream: "http://MOCK"
    stream: {include_usage: add}
    models: {gpt-4o: {tpm: 1000, burst: 100%}, gpt-4o-mini: {tpm: 100_000}, o3: {tpm: 1000, burst: 100%}, gpt-4.1: {tpm: 1000, burst: 100%}, "*": {tpm: 1000, burst: 100%}}
  anthropic: {upstream: "http://MOCK", models: {claude-opus: {tpm: 1000, burst: 100%}, claude-haiku: {tpm: 100_000}}}
  gemini: {upstream: "http://MOCK", models: {gemini-pro: {rpm: 1}, gemini-flash: {tpm: 100_000}}}
  azure: {upstream: "http://OTHER/openai", dialect: openai, models: {"*": {tpm: 100_000}}}
  jobs: {upstream: "http://OTHER/enqueue", dialect: generic}
classes:
  small: {priority: 3, on_limit: degrade}
  elsewhere: {priority: 2, on_limit: spill}
  default: {priority: 1}
degrade:
  gpt-4o: gpt-4o-mini
  o3: {static: STATIC}
  claude-opus: {model: claude-haiku, max_tokens: 50}
  gemini-pro: gemini-flash
spill: {gpt-4o: azure, gpt-4.1: {provider: azure, model: my-gpt}, o3: jobs}
`

const staticReply = `{"id":"x","object":"chat.completion","created":1,"model":"none","choices":[{"index":0,"finish_reason":"stop",
  "message":{"role":"assistant","content":"We are at capacity."}}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`

// read is ask, with the body of the answer.
func read(t *testing.T, url, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("content-type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// In a real Envoy, what a limit refuses is served by the smaller model, by another provider, by an endpoint that works later, or by
// a fixed reply, and the caller is told which.
func TestDegradeAndSpill(t *testing.T) {
	t.Parallel()
	other := startMock(t)
	file := filepath.Join(t.TempDir(), "busy.json")
	replaceFile(t, file, staticReply)
	s := startStack(t, strings.NewReplacer("OTHER", other.addr, "STATIC", file).Replace(degradePolicy), "--workers", "1")
	const chat, messages = "/openai/v1/chat/completions", "/anthropic/v1/messages"
	const gemini = "/gemini/v1beta/models/gemini-pro:generateContent"
	body := func(model string, output int, stream bool) string {
		return fmt.Sprintf(`{"model":%q,"max_tokens":%d,"stream":%v,"messages":[{"role":"user","content":"%s"}]}`, model, output, stream, strings.Repeat("ü\\n\u00fc ", 50))
	}
	type served struct {
		by          *mockProvider
		path, model string
		output      int64
	}
	for i, row := range []struct {
		class, path, body string
		decision, model   string
		served            served // by: nil: by nobody
	}{
		{"small", chat, body("gpt-4o", 900, false), "degrade", "gpt-4o-mini", served{s.mock, "/v1/chat/completions", "gpt-4o-mini", 900}},
		{"small", chat, body("gpt-4o", 30, true), "", "", served{s.mock, "/v1/chat/completions", "gpt-4o", 30}},
		{"small", chat, body("gpt-4o", 900, true), "degrade", "gpt-4o-mini", served{s.mock, "/v1/chat/completions", "gpt-4o-mini", 900}},
		{"small", messages, body("claude-opus", 900, false), "degrade", "claude-haiku", served{s.mock, "/v1/messages", "claude-haiku", 50}},
		{"small", messages, body("claude-opus", 900, true), "degrade", "claude-haiku", served{s.mock, "/v1/messages", "claude-haiku", 50}},
		{"elsewhere", chat + "?x=1", body("gpt-4o", 900, false), "spill", "gpt-4o", served{other, "/openai/v1/chat/completions", "gpt-4o", 900}},
		{"elsewhere", chat, body("gpt-4.1", 900, true), "spill", "my-gpt", served{other, "/openai/v1/chat/completions", "my-gpt", 900}},
		{"elsewhere", chat, body("o3", 900, false), "spill", "", served{other, "/enqueue/v1/chat/completions", "", 900}},
		{"small", chat, body("o3", 900, false), "degrade", "", served{}},
		{"small", chat, body("o3", 900, true), "degrade", "", served{}},
		{"default", chat, body("gpt-4o", 900, false), "deny", "", served{}},
	} {
		if i == 0 {
			for _, full := range [][2]string{{chat, body("gpt-4o", 500, false)}, {chat, body("o3", 500, false)}, {chat, body("gpt-4.1", 500, false)}, {messages, body("claude-opus", 500, false)}} {
				if status, h, _ := read(t, "http://"+s.proxy+full[0], full[1]); status != 200 {
					t.Fatalf("%d %v", status, h)
				}
			}
		}
		tag := fmt.Sprint("row", i)
		status, h, answer := read(t, "http://"+s.proxy+row.path, row.body, "x-priority", row.class, "x-mock-tag", tag, "authorization", "Bearer sk-1")
		if h.Get("x-weir-decision") != row.decision || row.decision != "deny" && status != 200 || row.model != "" && h.Get("x-weir-model") != row.model {
			t.Errorf("%d: %d %v %.200s", i, status, h, answer)
		}
		if row.served.by == nil {
			if n := len(s.mock.events(tag)) + len(other.events(tag)); n != 0 {
				t.Errorf("%d: %d were sent", i, n)
			}
			if row.decision == "degrade" && !strings.Contains(answer, "We are at capacity.") {
				t.Errorf("%d: %s", i, answer)
			}
			continue
		}
		ev := row.served.by.events(tag)
		if len(ev) != 1 || !strings.HasPrefix(ev[0].Path, row.served.path) || row.served.model != "" && ev[0].Model != row.served.model ||
			ev[0].Output != row.served.output && row.served.model != "" {
			t.Errorf("%d: served %+v, want %+v", i, ev, row.served)
		}
		if strings.Contains(row.body, `"stream":true`) && strings.HasPrefix(row.path, chat) &&
			(!strings.HasSuffix(answer, "data: [DONE]\n\n") || strings.Contains(answer, `"usage":{`)) {
			t.Errorf("%d: a stream that ends with %q", i, tail(answer, 300))
		}
	}
	for range 2 {
		status, h, answer := read(t, "http://"+s.proxy+gemini, `{"generationConfig":{"maxOutputTokens":900},"contents":[]}`, "x-priority", "small", "x-mock-tag", "gemini")
		if status != 200 {
			t.Errorf("%d %v %s", status, h, answer)
		}
	}
	if ev := s.mock.events("gemini"); len(ev) != 2 || ev[0].Path != "/v1beta/models/gemini-pro:generateContent" || ev[1].Path != "/v1beta/models/gemini-flash:generateContent" {
		t.Errorf("%+v", ev)
	}
	eventually(t, 5*time.Second, func() (bool, string) {
		_, stats := get(t, "http://"+s.admin+"/stats/prometheus?filter=weir_requests_total|weir_panics")
		return strings.Contains(stats, `weir_decision="degrade"`) && strings.Contains(stats, `weir_decision="spill"`) && !strings.Contains(stats, "weir_panics"), stats
	})
	changed := strings.Replace(staticReply, "We are at capacity.", "We are at capacity. Really.", 1)
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, func() (bool, string) { // the policy's own file has not changed
		_, _, answer := read(t, "http://"+s.proxy+chat, body("o3", 990, false), "x-priority", "small")
		return strings.Contains(answer, "capacity. Really."), answer
	})
}
