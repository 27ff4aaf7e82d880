// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
	"github.com/weirproxy/weir/policy"
	"pgregory.net/rapid"
)

const attemptPolicy = `{"apiVersion":"weir/v1","trust":["all"],"providers":{
	"openai":{"upstream":"http://openai.test","models":{"*":{"rpm":"1000","burst":"100%","window":"fixed","in_flight":"100"}}},
	"own":{"cluster":"own","dialect":"openai"}},
	"limits":{"tree":{"default":{"tokens":"100000","calls":"6","retries":"2","ttl":"10m"}},"tenant":{"default":{"tpm":"1000","burst":"100%","window":"fixed","in_flight":"3"}}}}`

func withTree(p *filtertest.Process, worker int, provider, tenant, tree string) *filtertest.Exchange {
	r := request("/"+provider+"/v1/chat/completions", tenant, `{"model":"gpt-4o","max_tokens":92,"messages":[{"role":"user","content":"hi"}]}`)
	r.Headers = append(r.Headers, [2]string{"x-request-tree", tree}, [2]string{"x-weir-ticket", "12345678"})
	return p.Worker(worker).Open(r)
}

// Each attempt of Envoy's is a call: it counts, a retry draws on the tree's budget for retries, and one that no budget has room for
// is refused in the provider's place, which Envoy passes on. What the last attempt has used is settled as ever.
func TestAttempts(t *testing.T) {
	both(t, 2, attemptPolicy, func(t *testing.T, p *filtertest.Process) {
		if err := p.CountAttempts(); err != nil {
			t.Fatal(err)
		}
		x := withTree(p, 0, "openai", "a", "t")
		for i, status := range []int{503, 429, 200} {
			if !x.Attempt() {
				t.Fatalf("attempt %d: %+v", i+1, x.Reply)
			}
			if again := x.Fails(status); !again {
				t.Fatalf("attempt %d: Envoy may not send again", i+1)
			}
		}
		x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
		if x.Upstream("x-weir-ticket") != "" {
			t.Error("the caller's ticket left")
		}
		p.Sleep(40 * time.Millisecond)
		for output, fits := range map[string]bool{"982": true, "983": false} { // of 1000 tokens 10 were used
			probe := request("/openai/v1/chat/completions", "a", `{"model":"gpt-4o","max_tokens":`+output+`,"messages":[{"role":"user","content":"hi"}]}`)
			if z := p.Worker(0).Open(probe); z.Sent != fits {
				t.Errorf("%s tokens of output beside what three attempts have used: sent %v, %+v", output, z.Sent, z.Reply)
			} else if fits {
				z.Answer(400, `{}`)
				p.Sleep(40 * time.Millisecond)
			}
		}
		y := withTree(p, 1, "openai", "a", "t") // the fourth call
		if !y.Attempt() || !y.Fails(503) {
			t.Fatal("the first attempt is as ever")
		}
		if y.Attempt() || reasonOf(y) != "retry_budget_exhausted" || y.Reply.Headers.Get("x-should-retry") != "false" {
			t.Errorf("a third retry of the tree: %+v", y.Reply)
		}
		y.Close()
		p.Sleep(40 * time.Millisecond)
		for i := range 2 {
			if z := withTree(p, i, "openai", "a", "t"); !z.Sent {
				t.Errorf("call %d: %+v", 5+i, z.Reply)
			} else {
				z.Answer(400, `{}`)
				p.Sleep(40 * time.Millisecond)
			}
		}
		if z := withTree(p, 0, "openai", "a", "t"); reasonOf(z) != "quota_exhausted" {
			t.Errorf("the seventh call: %+v", z.Reply)
		}
		if n := p.Metric("weir_envoy_retries_total"); n != 2 {
			t.Errorf("%d retries counted", n)
		}
	})
}

// Envoy is kept from sending again what the provider says makes no sense to send again, or not before long, and the caller is not
// told of it. A cluster without the filter gets no ticket, and who has none that is known is not taken for another.
func TestAttemptsThatMakeNoSense(t *testing.T) {
	both(t, 1, attemptPolicy, func(t *testing.T, p *filtertest.Process) {
		if err := p.CountAttempts(); err != nil {
			t.Fatal(err)
		}
		for i, h := range [][2]string{{"x-should-retry", "false"}, {"retry-after", "11"}} {
			x := withTree(p, 0, "openai", "a", "t")
			x.Attempt()
			if x.Fails(503, h) {
				t.Errorf("%v: Envoy may send again", h)
			}
			x.Respond(503, true, h, [2]string{"x-envoy-ratelimited", "true"})
			for _, a := range x.AnswerHeaders() {
				if a[0] == "x-envoy-ratelimited" {
					t.Errorf("%d: the caller sees %v", i, a)
				}
			}
			x.Close()
		}
		x := withTree(p, 0, "own", "a", "t")
		if !x.Attempt() || !x.Fails(503) || !x.Attempt() {
			t.Error("a cluster of the Envoy's own")
		}
		x.Close()
		if x = withTree(p, 0, "openai", "b", "u"); !x.Sent {
			if reasonOf(x) != "provider_cooling" {
				t.Fatalf("%+v", x.Reply)
			}
			p.Sleep(11 * time.Second)
			x = withTree(p, 0, "openai", "b", "u")
		}
		x.Close() // its ticket is over
		if !x.Attempt() {
			t.Error("the first attempt of a stream that is gone was admitted before")
		}
		if x.Attempt() || x.Reply.Status != 503 {
			t.Errorf("another one nobody can charge: %+v", x.Reply)
		}
	})
}

// A request is not sent again by two: who comes again gets no more than one attempt, and a library is told not to come again where
// Envoy has tried.
func TestRetriesDoNotMultiply(t *testing.T) {
	both(t, 1, attemptPolicy, func(t *testing.T, p *filtertest.Process) {
		if err := p.CountAttempts(); err != nil {
			t.Fatal(err)
		}
		told := func(x *filtertest.Exchange) (value string) {
			x.Respond(503, true)
			for _, h := range x.AnswerHeaders() {
				if h[0] == "x-should-retry" {
					value = h[1]
				}
			}
			x.Close()
			return value
		}
		x := withTree(p, 0, "openai", "a", "t")
		if !x.Attempt() || !x.Fails(503) || !x.Attempt() || !x.Fails(503) || told(x) != "false" {
			t.Error("after two attempts the library is not told to leave it")
		}
		if x = withTree(p, 0, "openai", "a", "t"); !x.Attempt() || !x.Fails(503) || told(x) != "" {
			t.Error("after one attempt the library decides")
		}
		r := request("/openai/v1/chat/completions", "a", `{"model":"gpt-4o","max_tokens":92,"messages":[]}`)
		r.Headers = append(r.Headers, [2]string{"x-stainless-retry-count", "1"})
		if x = p.Worker(0).Open(r); !x.Attempt() || x.Fails(503) {
			t.Error("Envoy may send a library's retry again")
		}
		x.Close()
	})
}

// Whatever attempts come to, nothing is held or charged beside what was sent.
func TestAttemptsAreConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := filtertest.NewProcess(nil, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Configure([]byte(attemptPolicy)); err != nil {
			t.Fatal(err)
		}
		if err := p.CountAttempts(); err != nil {
			t.Fatal(err)
		}
		sent := 0
		var open []*filtertest.Exchange
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(open) == 0 || rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				x := withTree(p, rapid.IntRange(0, 1).Draw(t, "worker"), "openai", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"), rapid.SampledFrom([]string{"t", "u", "v"}).Draw(t, "tree"))
				if x.Sent && x.Attempt() {
					sent++
					open = append(open, x)
				}
				continue
			}
			i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
			x := open[i]
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
			case 1:
				x.Close()
			case 2: // no answer to the attempt: a reset
				if x.Attempt() {
					sent++
					continue
				}
				x.Close()
			case 3:
				x.Fails(rapid.SampledFrom([]int{429, 503, 400}).Draw(t, "status"))
				if x.Attempt() {
					sent++
					continue
				}
				x.Close()
			}
			open = append(open[:i], open[i+1:]...)
			p.Sleep(20 * time.Millisecond)
		}
		for _, x := range open {
			x.Close()
		}
		p.Sleep(6 * time.Second)
		if requests, inFlight := poolUse(t, p, attemptPolicy); requests != int64(sent) || inFlight != 0 {
			t.Fatalf("%d requests count, %d attempts were sent; %d in flight", requests, sent, inFlight)
		}
		if n := p.Metric("weir_panics_total"); n > 0 {
			t.Fatal(strings.Join(p.Logs, "\n"))
		}
	})
}

// poolUse is what of the pool of openai's models counts, as another worker sees it.
func poolUse(t *rapid.T, p *filtertest.Process, config string) (requests, inFlight int64) {
	spec, err := policy.Decode([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := policy.Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := compiled.Providers[0].Models.Lookup("gpt-4o")
	if m == nil {
		m, _ = compiled.Providers[1].Models.Lookup("gpt-4o")
	}
	var path policy.Path
	path.Add(m.Pool(0))
	l := policy.NewLedger(p.Store, 99)
	l.SetWall(p.Clock, p.Wall.UnixNano())
	var held policy.Reservation
	for n := int64(1000); n >= 0; n-- { // the most that fits; in flight is the tighter limit
		if l.Reserve(p.Clock, &path, policy.Cost{Requests: n}, &held).Verdict == policy.Admit {
			inFlight = 100 - n
			break
		}
	}
	l.Settle(p.Clock, &held, policy.Cost{})
	d := l.Reserve(p.Clock, &path, policy.Cost{Requests: 1000}, &held)
	if d.Refusal.Dimension == policy.InFlight {
		only := m.Pool(0)
		only.Limit = policy.NewLimit(policy.Enforce, 0, m.Limit.Meters...)
		path.Len = 0
		path.Add(only)
		d = l.Reserve(p.Clock, &path, policy.Cost{Requests: 1000}, &held)
	}
	if d.Verdict == policy.Admit {
		return 0, inFlight
	}
	return 1000 - d.Refusal.Remaining, inFlight
}
