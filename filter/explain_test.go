// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"strings"
	"testing"

	"github.com/weirproxy/weir/filter/filtertest"
)

// Who asks and may is told what a call costs, where that comes from, and what all its limits had left; nobody else is.
func TestExplain(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","trust":["all"],"explain":{"header":true},"providers":{"openai":{"upstream":"http://openai.test",
		"models":{"*":{"rpm":"600","in_flight":"3"}}}},"limits":{"tenant":{"default":{"tpm":"1000"}}}}`
	ask := func(p *filtertest.Process, asks string) *filtertest.Exchange {
		r := request("/openai/v1/chat/completions", "a", `{"model":"gpt-4o","max_tokens":600,"messages":[{"role":"user","content":"hi"}]}`)
		r.Headers = append(r.Headers, [2]string{"x-weir-explain", asks})
		x := p.Worker(0).Open(r)
		if x.Sent {
			x.Respond(200, true)
		}
		return x
	}
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		const charge = "charge;requests=1;input=8;output=600;how=exact;output_from=declared, tenant;dimension=tpm;limit=1000;window=60;left="
		x := ask(p, "1")
		if got, want := answerHeader(x, "x-weir-explain"), charge+"1000, provider;dimension=rpm;limit=600;window=60;left=600, provider;dimension=in_flight;limit=3;window=0;left=3"; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if y := ask(p, "1"); y.Reply == nil || !strings.HasPrefix(y.Reply.Headers.Get("x-weir-explain"), charge+"242, ") {
			t.Errorf("a refusal: %+v", y.Reply)
		}
		if y := ask(p, "0"); y.Reply == nil || y.Reply.Headers.Get("x-weir-explain") != "" {
			t.Errorf("who does not ask: %+v", y.Reply)
		}
	})
	both(t, 1, strings.Replace(policy, "true", "false", 1), func(t *testing.T, p *filtertest.Process) {
		if got := answerHeader(ask(p, "1"), "x-weir-explain"); got != "" {
			t.Errorf("the policy does not allow it: %s", got)
		}
	})
}
