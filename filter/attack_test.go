// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"strings"
	"testing"

	"github.com/weirproxy/weir/filter/filtertest"
)

// What callers and providers may try (docs/threat-model.md). Each test is named after the fault that it looks for.

// Envoy puts fields into an access log of text as they are: a line break in a caller's name would be another line.
func TestAccessLogForgedByANewline(t *testing.T) {
	policy := strings.Replace(logPolicy, `"access":true`, `"access":true,"caller":true`, 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		r := request("/openai/v1/chat/completions", "a\tb\" c\\", `{"model":"m\nweir decision=admit\u001b[31m`+strings.Repeat("x", 300)+`","max_tokens":6,"messages":[]}`)
		r.Headers = append(r.Headers, [2]string{"x-request-id", "é\x1b\"\xff"})
		x := p.Worker(0).Open(r)
		x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
		for name, want := range map[string]string{
			"model": `m\nweir decision=admit\x1b[31m` + strings.Repeat("x", 128-len("m\nweir decision=admit\x1b[31m")), "tenant": `a\tb\" c\\`, "request_id": `é\x1b\"\xff`,
			"provider": "openai", "decision": "admit",
		} {
			if got := x.FilterState("weir." + name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		for _, line := range p.Logs {
			if strings.ContainsAny(line, "\n\x1b\t") || strings.Count(line, " decision=") != 1+strings.Count(line, `decision=admit\x1b`) {
				t.Errorf("logged %q", line)
			}
		}
	})
}

// CGI and its heirs read x_tenant as x-tenant, so neither may leave.
func TestIdentityHeaderDisguisedByAnUnderscore(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		r := request("/tool/x", "a", "{}")
		for _, name := range []string{"x_tenant", "x_user", "x-request_tree", "x_weir_tenant", "x_envoy-retry-on", "x_other", "a_b"} {
			r.Headers = append(r.Headers, [2]string{name, "forged"})
		}
		x := p.Worker(0).Open(r)
		for _, h := range x.Headers {
			if h[1] == "forged" && h[0] != "x_other" && h[0] != "a_b" {
				t.Errorf("%s has left", h[0])
			}
		}
		if !x.Sent || x.Upstream("x_other") == "" || x.Upstream("a_b") == "" {
			t.Errorf("too much has gone: %v", x.Headers)
		}
	})
}

// No way of writing a path leads past what was looked at, not even where the listener does not normalise paths.
func TestPathThatClimbs(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"http://a.test","unmetered":["/v1/realtime/*"]},
		"files":{"upstream":"http://a.test","dialect":"generic"}}}`
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for _, path := range []string{
			"/openai/v1/realtime/../batches", "/openai/v1/realtime/..;x/batches", `/openai/v1/realtime/..\batches`, "/openai/v1/realtime/..%5cbatches",
			"/openai/v1/realtime/%2e%2e/batches", "/openai/v1/realtime/%252e%252e%252fbatches", "/openai/v1/realtime/.%2e/batches", "/files/../v1/chat/completions",
			"/files/..", "/files/./x", "/files/%zz/%2e%2e/x", "/files/%2525252525252e%2525252525252e/x",
		} {
			x := p.Worker(0).Open(filtertest.Request{Path: path, Body: []byte(`{"model":"m"}`)})
			if x.Reply == nil || x.Reply.Headers.Get("x-weir-reason") != "bad_path" {
				t.Errorf("%s: sent %v, %+v", path, x.Sent, x.Reply)
			}
		}
		for _, path := range []string{"/files/a..b", "/files/.well-known", "/files/...", "/files/v1.5/x", "/files/x?y=/../z", "/files/100%25", "/files/a%252Fb", "/files/%zz"} {
			if x := p.Worker(0).Open(filtertest.Request{Path: path, Body: []byte(`{}`)}); !x.Sent {
				t.Errorf("%s: %+v", path, x.Reply)
			}
		}
	})
}

// One parser reads the first of two members, another the last, and one of Go's that in capitals, too: whichever model it is, its limit
// holds, and if two have limits the body is refused.
func TestBodyThatNamesTwoModels(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"http://a.test","models":{"dear":{"rpm":"1","burst":"100%"},"cheap":{"rpm":"1000"}}}}}`
	const rest = `"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for body, reason := range map[string]string{
			`{"model":"dear","model":"none",` + rest: "limit_exceeded", `{"model":"none","model":"dear",` + rest: "limit_exceeded",
			`{"MODEL":"dear",` + rest: "limit_exceeded", `{"model":"none","Model":"dear",` + rest: "limit_exceeded", `{"Model":"dear","model":"none",` + rest: "limit_exceeded",
			`{"model":"none","model":"dear","model":"other",` + rest: "", // nobody reads the one in the middle
			`{"model":"dear","model":"cheap",` + rest:                "unreadable_body", `{"model":"cheap","MODEL":"dear",` + rest: "unreadable_body",
			`{"model":"dear","\u006dodel":"cheap",` + rest: "unreadable_body", `{"model":"cheap","model":"cheap",` + rest: "",
		} {
			p.Sleep(3 * 60e9)
			r := filtertest.Request{Path: "/openai/v1/chat/completions", Headers: [][2]string{{"content-type", "application/json"}}, Body: []byte(body)}
			if x := p.Worker(0).Open(r); x.Sent == (reason == "unreadable_body") {
				t.Errorf("%s: sent %v, %+v", body, x.Sent, x.Reply)
			}
			got := ""
			if x := p.Worker(0).Open(r); x.Reply != nil {
				got = x.Reply.Headers.Get("x-weir-reason")
			}
			if got != reason {
				t.Errorf("%s: the second is refused for %q, want %q", body, got, reason)
			}
		}
	})
}

// Who has heard of another's reservation draws on its own limits, and takes nothing from it.
func TestReservationUsedByAnotherTenant(t *testing.T) {
	both(t, 1, agentPolicy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		id := opened(t, w)
		before := left(t, w, "user", "tokens")
		for _, forged := range [][2]string{{"x-tenant", "b"}, {"x-user", "v"}} {
			r := request("/openai/v1/chat/completions", "a", `{"model":"gpt-4o","max_tokens":500,"messages":[{"role":"user","content":"hi"}]}`)
			r.Headers = [][2]string{{"content-type", "application/json"}, {"x-tenant", "a"}, {"x-user", "u"}, {"x-request-tree", "t"}, {"x-weir-reservation", id}}
			for i := range r.Headers {
				if r.Headers[i][0] == forged[0] {
					r.Headers[i] = forged
				}
			}
			x := w.Open(r)
			if !x.Sent {
				t.Fatalf("%+v", x.Reply)
			}
			if got := left(t, w, "user", "tokens"); got != before {
				t.Errorf("%v: %v left of the owner's, %v before", forged, got, before)
			}
			x.Close()
		}
		for range 8 { // all its branches are still there, for exactly what was reserved
			if x := branch(w, id, 500); !x.Sent {
				t.Fatalf("%+v", x.Reply)
			}
		}
		if got := left(t, w, "user", "tokens"); got < before {
			t.Errorf("%v left, %v when they were reserved", got, before)
		}
	})
}

// No number that a provider writes breaks the reckoning: what is absurd counts as reserved, and the tenant's limit goes on.
func TestAnswerWithAbsurdNumbers(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		for _, usage := range []string{
			`{"prompt_tokens":-8,"completion_tokens":-992}`, `{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}`,
			`{"prompt_tokens":1e308,"completion_tokens":1e400}`, `{"prompt_tokens":NaN,"completion_tokens":NaN}`, `{"prompt_tokens":"8","completion_tokens":[2]}`,
			`{"prompt_tokens":18446744073709551615,"completion_tokens":18446744073709551616}`, `null`, `[]`, strings.Repeat("[", 100_000),
		} {
			tenant := "t" + usage[:min(len(usage), 60)]
			x := p.Worker(0).Open(request("/openai/v1/chat/completions", tenant, `{"model":"gpt-4o","max_tokens":1000,"messages":[{"role":"user","content":"hi"}]}`))
			x.Answer(200, `{"choices":[],"usage":`+usage+`}`)
			if n := used(t, p, tenant); n < 0 || n > 2000 {
				t.Errorf("%.60s: %d are used", usage, n)
			}
		}
		for _, h := range [][2]string{{"retry-after", "1000000000000000000"}, {"retry-after", "-1"}, {"x-ratelimit-remaining-tokens", "-9223372036854775808"}, {"x-ratelimit-limit-tokens", "99999999999999999999"}, {"x-ratelimit-reset-tokens", "1e300h"}} {
			x := p.Worker(0).Open(chat("a", "hi", 10))
			if !x.Sent {
				t.Fatalf("after %v: %+v", h, x.Reply)
			}
			x.Respond(200, true, h)
		}
	})
}
