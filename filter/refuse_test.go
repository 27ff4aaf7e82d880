// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// A denial speaks the caller's dialect, and says which limit it was, what is left, and when to come back.
func TestDenialInTheCallersDialect(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		for _, tenant := range []string{"a", "b"} {
			p.Worker(0).Open(chat(tenant, "hi", 90_000))
		}
		p.Sleep(30 * time.Second)
		x := p.Worker(0).Open(chat("a", "hi", 20_000))
		h := x.Reply.Headers
		for name, want := range map[string]string{
			"content-type": "application/json", "x-weir-decision": "deny", "x-weir-reason": "limit_exceeded", "x-weir-tier": "tenant",
			"x-weir-dimension": "tpm", "x-should-retry": "true", "ratelimit-policy": `"tenant-tpm";q=100000;w=60`,
			"x-ratelimit-limit-tokens": "100000", "x-ratelimit-remaining-tokens": "9992",
		} {
			if h.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, h.Get(name), want)
			}
		}
		seconds, _ := strconv.Atoi(h.Get("retry-after"))
		ms, _ := strconv.Atoi(h.Get("retry-after-ms"))
		if seconds < 1 || ms > seconds*1000 || ms <= (seconds-1)*1000 {
			t.Errorf("retry-after %d s, %d ms", seconds, ms)
		}
		if x.Reply.Status != 429 || field(t, x.Reply.Body, "error.code") != "rate_limit_exceeded" || field(t, x.Reply.Body, "error.type") != "tokens" ||
			field(t, x.Reply.Body, "error.weir.tier") != "tenant" || field(t, x.Reply.Body, "error.weir.limit") != 100000.0 {
			t.Error(x.Reply.Body)
		}
		x = p.Worker(0).Open(request("/anthropic/v1/messages", "b", `{"model":"claude","max_tokens":20000,"messages":[{"role":"user","content":"hi"}]}`))
		if field(t, x.Reply.Body, "type") != "error" || field(t, x.Reply.Body, "error.type") != "rate_limit_error" ||
			x.Reply.Headers.Get("anthropic-ratelimit-tokens-limit") != "100000" || x.Reply.Headers.Get("anthropic-ratelimit-tokens-reset") == "" {
			t.Errorf("%+v", x.Reply)
		}
	})
}

// The message says what is left of the limit and what the request needs, so that nobody is told of a limit "used up" while
// three quarters of it are not; and whose limit it is, where that is not the caller's own.
func TestMessageSaysWhatIsLeft(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","trust":["all"],"who":{"tenant":["header x-tenant"]},"providers":{"openai":{"upstream":"http://openai.test"}},
		"limits":{"tenant":{"default":{"tpm":"2000"},"daily":{"tpd":"3000"},"busy":{"rpd":"1000000"},"one":{"in_flight":"1"}}}}`
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for _, row := range []struct{ tenant, reason, retry, says string }{
			{"acme", "limit_exceeded", "true", "the tenant limit of 2000 tokens in 1m0s (tpm), of which 500 may come at once, has 92 left for now, and the request needs 408. Try again in "},
			{"", "limit_exceeded", "true", "the request needs 408. Who does not name its tenant, or is not trusted to, shares this limit with all others of that kind. Try again in "},
			{"daily", "quota_exhausted", "false", "the tenant limit of 3000 tokens in 24h0m0s (tpd), of which 750 may come at once, has 342 left for now, and the request needs 408."},
			{"one", "limit_exceeded", "true", "the tenant limit of 1 requests in flight (in_flight) is reached. Nobody knows when one will end. Try again in "},
		} {
			p.Worker(0).Open(chat(row.tenant, "hi", 400))
			x := p.Worker(0).Open(chat(row.tenant, "hi", 400))
			if x.Reply == nil {
				t.Fatalf("%s: not refused", row.tenant)
			}
			h := x.Reply.Headers
			if got := field(t, x.Reply.Body, "error.message").(string); !strings.Contains(got, row.says) || h.Get("x-weir-reason") != row.reason || h.Get("x-should-retry") != row.retry {
				t.Errorf("%s: %s, retry %s: %s", row.tenant, h.Get("x-weir-reason"), h.Get("x-should-retry"), got)
			}
		}
		x := p.Worker(0).Open(chat("acme", "hi", 400))
		if field(t, x.Reply.Body, "error.weir.need") != 408.0 || field(t, x.Reply.Body, "error.weir.remaining") != 92.0 {
			t.Error(x.Reply.Body)
		}
	})
}

// Callers that are refused together are not all told the same time, and none an earlier one than the true one.
func TestRetryAfterIsSpread(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		p.Worker(0).Open(chat("a", "hi", 90_000))
		seen := map[string]bool{}
		for range 30 {
			x := p.Worker(0).Open(chat("a", "hi", 20_000))
			ms, _ := strconv.Atoi(x.Reply.Headers.Get("retry-after-ms"))
			reset, err := time.ParseDuration(x.Reply.Headers.Get("x-ratelimit-reset-tokens"))
			if err != nil {
				t.Fatal(err)
			}
			if told := time.Duration(ms) * time.Millisecond; told < reset || told > reset*6/5+time.Second {
				t.Errorf("told to wait %v, the limit frees in %v", told, reset)
			}
			seen[x.Reply.Headers.Get("retry-after-ms")] = true
		}
		if len(seen) < 5 {
			t.Errorf("only %d different times", len(seen))
		}
	})
}

// A request that can never fit is told so, in words that no library takes for something to try again.
func TestTooLarge(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		x := p.Worker(0).Open(chat("a", "hi", limit))
		if x.Reply.Status != 413 || x.Reply.Headers.Get("x-should-retry") != "false" || x.Reply.Headers.Get("retry-after") != "" ||
			x.Reply.Headers.Get("x-weir-reason") != "request_too_large" || strings.Contains(x.Reply.Body, "429") || strings.Contains(strings.ToLower(x.Reply.Body), "rate limit") {
			t.Errorf("%+v", x.Reply)
		}
		if got := used(t, p, "a"); got != 0 {
			t.Errorf("it was charged %d", got)
		}
	})
}

// What is not declared never makes a request too large, nor does a guess from the length of a body that nobody read.
func TestUndeclaredFits(t *testing.T) {
	policy := strings.Replace(onePolicy, `"tpm":"100000"`, `"tpm":"1000"`, 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		x := p.Worker(0).Open(request("/openai/v1/chat/completions", "a", `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`))
		if !x.Sent {
			t.Errorf("%+v", x.Reply)
		}
		big := request("/openai/v1/chat/completions", "b", `{"model":"gpt-4o","messages":[{"role":"user","content":"`+strings.Repeat("a", 2<<20)+`"}]}`)
		if x := p.Worker(0).Open(big); !x.Sent || len(x.Body) != len(big.Body) {
			t.Errorf("%+v", x.Reply)
		}
	})
}

// Paths that cannot be metered are refused unless the policy names them; free ones cost a request and no tokens.
func TestPaths(t *testing.T) {
	policy := strings.Replace(onePolicy, `"openai":{`, `"openai":{"unmetered":["/v1/audio/*"],`, 1)
	get := func(path string, headers ...[2]string) filtertest.Request {
		return filtertest.Request{Method: "GET", Path: path, Headers: append(headers, [2]string{"x-tenant", "a"})}
	}
	upgrade := [2]string{"upgrade", "websocket"}
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for _, row := range []struct {
			request filtertest.Request
			status  int
			reason  string
		}{
			{get("/nowhere/x"), 404, "unknown_prefix"},
			{get("/openaix/v1/models"), 404, "unknown_prefix"},
			{get("/openai/v1/models"), 0, ""},
			{get("/openai/v1/models/gpt-4o?x=1"), 0, ""},
			{get("/openai/v1/secret"), 403, "not_metered"},
			{get("/openai/v1/models/..%2F..%2Fsecret"), 400, "bad_path"},
			{get("/tool/a%2f.%2Fb"), 400, "bad_path"},
			{get("/tool/a%2Fb..c/%2e%2e%2e?x=..%2F"), 0, ""},
			{request("/openai/v1/batches", "a", `{}`), 403, "not_metered"},
			{request("/anthropic/v1/messages/batches", "a", `{}`), 403, "not_metered"},
			{request("/openai/v1/batches/b_1/cancel", "a", ``), 0, ""},
			{request("/anthropic/v1/messages/batches/b_1/cancel", "a", ``), 0, ""},
			{request("/openai/v1/fine_tuning/jobs/f_1/cancel", "a", ``), 403, "not_metered"},
			{get("/openai/v1/realtime?model=x", upgrade), 403, "not_metered"},
			{get("/openai/v1/responses", upgrade), 403, "not_metered"},
			{request("/openai/v1/audio/speech", "a", `{}`), 0, ""},
			{request("/openai/v1/images/generations", "a", `{}`), 403, "not_metered"},
			{request("/anthropic/v1/messages/count_tokens", "a", `{"messages":[{"role":"user","content":"hi"}]}`), 0, ""},
			{request("/tool/anything", "a", `{}`), 0, ""},
			{get("/tool/ws", upgrade), 0, ""},
			{filtertest.Request{Method: "OPTIONS", Path: "/openai/v1/chat/completions"}, 0, ""},
		} {
			x := p.Worker(0).Open(row.request)
			if row.status == 0 {
				if !x.Sent {
					t.Errorf("%s: %+v", row.request.Path, x.Reply)
				}
				x.Answer(200, `{"input_tokens":4000}`)
			} else if x.Reply == nil || x.Reply.Status != row.status || x.Reply.Headers.Get("x-weir-reason") != row.reason {
				t.Errorf("%s: %+v", row.request.Path, x.Reply)
			}
		}
		if got := used(t, p, "a"); got != 0 {
			t.Errorf("free paths were charged %d tokens", got)
		}
		if x := p.Worker(0).Open(get("/nowhere/x")); !strings.Contains(x.Reply.Body, "/openai/ ") || !strings.Contains(x.Reply.Body, "/tool/") {
			t.Errorf("the prefixes are not listed: %s", x.Reply.Body)
		}
	})
}

// A path written in an odd way is limited like the plain one.
func TestOddPaths(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		for i, path := range []string{"//v1/chat/completions", "/v1/chat/completions?x=1", "/V1/Chat/Completions", "/v1/chat%2Fcompletions", "/v1/chat/completions/", "/proj/abc/v1/chat//completions", "/chat/completions"} {
			tenant := fmt.Sprint(i)
			r := chat(tenant, "hi", 1000)
			r.Path = "/openai" + path
			if x := p.Worker(0).Open(r); !x.Sent {
				t.Errorf("%s: %+v", path, x.Reply)
			}
			if got := used(t, p, tenant); got != input+1000 {
				t.Errorf("%s: %d tokens reserved", path, got)
			}
		}
	})
}

// A refused HEAD has headers and no body, and no reply repeats anything of the request.
func TestRepliesAreClean(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		x := p.Worker(0).Open(filtertest.Request{Method: "HEAD", Path: "/nowhere"})
		if x.Reply.Status != 404 || x.Reply.Body != "" {
			t.Errorf("%+v", x.Reply)
		}
		evil := "ev\"il\r\nx-evil: 1<script>"
		body, _ := json.Marshal(map[string]any{"model": evil, "max_tokens": limit, "messages": []any{map[string]any{"role": "user", "content": evil}}})
		x = p.Worker(0).Open(request("/openai/v1/chat/completions", "a", string(body)))
		if x.Reply == nil || !json.Valid([]byte(x.Reply.Body)) || strings.Contains(x.Reply.Body, "script") {
			t.Errorf("%+v", x.Reply)
		}
		for name, values := range x.Reply.Headers {
			for _, v := range values {
				if strings.Contains(name+v, "evil") {
					t.Errorf("%s: %s", name, v)
				}
			}
		}
	})
}
