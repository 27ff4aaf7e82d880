// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

const logPolicy = `{"apiVersion":"weir/v1","trust":["all"],"providers":{"openai":{"upstream":"http://openai.test"}},
	"limits":{"tenant":{"default":{"tpm":"1000"},"quiet":{"rpm":"1","mode":"shadow"}}},"log":{"admit":"info","deny":"warn","access":true}}`

// Each request has one line, when it is over, with what was decided and why, and what it was charged; the access log has the same.
func TestLog(t *testing.T) {
	both(t, 1, logPolicy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		ask := func(tenant, model string) *filtertest.Exchange {
			r := request("/openai/v1/chat/completions", tenant, `{"model":"`+model+`","max_tokens":600,"messages":[{"role":"user","content":"hi"}]}`)
			r.Headers = append(r.Headers, [2]string{"x-request-id", "id-1"}, [2]string{"x-stainless-retry-count", "1"})
			return w.Open(r)
		}
		line := func(x *filtertest.Exchange, want string) {
			t.Helper()
			n := len(p.Logs)
			if x.Sent {
				x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
			} else {
				x.Close()
			}
			if got := p.Logs[n:]; len(got) != 1 || got[0] != want {
				t.Errorf("logged %q, want %q", got, want)
			}
		}
		first, second := ask("a", "gpt-4o"), ask("a", "gpt-4o\\\" decision=deny\\n")
		line(second, `weir decision=deny reason=limit_exceeded tier=tenant dimension=tpm limit=1000 need=608 wait_ms=62000 status=429 `+
			`request_id="id-1" attempt=2 waited_ms=0 provider=openai model="gpt-4o\" decision=deny\n"`)
		if second.FilterState("weir.reason") != "limit_exceeded" || second.FilterState("weir.need") == "" {
			t.Error("the access log is not told of the refusal")
		}
		line(first, `weir decision=admit status=200 request_id="id-1" attempt=2 waited_ms=0 provider=openai model="gpt-4o" `+
			`how=exact input=8 output=600 ending=complete source=usage charged_input=8 charged_output=2`)
		if first.FilterState("weir.charged_output") != "2" {
			t.Error("the access log is not told of the charge")
		}
		ask("quiet", "gpt-4o").Answer(200, `{}`)
		x := ask("quiet", "gpt-4o")
		x.Answer(200, `{}`)
		if got := p.Logs[len(p.Logs)-1]; !strings.HasPrefix(got, "weir decision=admit shadow_reason=limit_exceeded shadow_tier=tenant shadow_dimension=rpm ") {
			t.Errorf("a shadow limit: %q", got)
		}
	})
}

// Where the policy says so, it names who asks; what they wrote is quoted.
func TestLogOfCallers(t *testing.T) {
	both(t, 1, strings.Replace(logPolicy, `"access":true`, `"access":true,"caller":true`, 1), func(t *testing.T, p *filtertest.Process) {
		r := request("/openai/v1/chat/completions", "acme decision=deny", `{"model":"gpt-4o","max_tokens":60,"messages":[],"user":"in the body"}`)
		r.Headers = append(r.Headers, [2]string{"x-user", `an"n`})
		x := p.Worker(0).Open(r)
		x.Answer(200, `{}`)
		if got := p.Logs[len(p.Logs)-1]; !strings.Contains(got, ` tenant="acme decision=deny" user="an\"n" attempt=1 `) {
			t.Errorf("logged %q", got)
		}
		if x.FilterState("weir.tenant") != "acme decision=deny" {
			t.Errorf("the access log hears of %q", x.FilterState("weir.tenant"))
		}
	})
}

// The line says how long a request waited.
func TestLogOfWhoWaited(t *testing.T) {
	both(t, 1, strings.Replace(logPolicy, `"limits"`, `"classes":{"batch":{"on_limit":"queue","wait":"10s"}},"limits"`, 1), func(t *testing.T, p *filtertest.Process) {
		r := request("/openai/v1/chat/completions", "a", `{"model":"gpt-4o","max_tokens":240,"messages":[]}`)
		p.Worker(0).Open(r).Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":240}}`)
		r.Body = []byte(strings.Replace(string(r.Body), "240", "100", 1))
		x := p.Worker(0).Open(r)
		p.Sleep(9 * time.Second)
		if x.Answer(200, `{}`); !x.Sent {
			t.Fatal("it was not sent")
		}
		_, after, _ := strings.Cut(p.Logs[len(p.Logs)-1], "waited_ms=")
		if ms, _ := strconv.Atoi(strings.Fields(after)[0]); ms < 100 {
			t.Errorf("who waited: %q", p.Logs)
		}
	})
}

// Without a word in the policy nothing is written.
func TestNoLog(t *testing.T) {
	both(t, 1, strings.Replace(logPolicy, `,"log":{"admit":"info","deny":"warn","access":true}`, "", 1), func(t *testing.T, p *filtertest.Process) {
		x := p.Worker(0).Open(request("/openai/v1/chat/completions", "a", `{"model":"gpt-4o","max_tokens":6000,"messages":[]}`))
		if x.Close(); len(p.Logs) != 0 || x.FilterState("weir.decision") != "" {
			t.Errorf("%q", p.Logs)
		}
	})
}
