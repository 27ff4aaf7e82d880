// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// gatePolicy has a provider whose pool has limits, one without any, and one that goes by no answers.
const gatePolicy = `{"apiVersion":"weir/v1","trust":["all"],"providers":{
	"openai":{"upstream":"http://openai.test","models":{"gpt-*":{"rpm":"600","burst":"100","window":"continuous"}}},
	"free":{"upstream":"http://free.test","dialect":"openai"},
	"deaf":{"upstream":"http://deaf.test","dialect":"openai","adapt":{"off":true},"models":{"*":{"rpm":"600"}}}},
	"classes":{"batch":{"on_limit":"queue","wait":"10s"},"hasty":{"priority":9}}}`

func callAs(w *filtertest.Worker, provider, class string) *filtertest.Exchange {
	r := request("/"+provider+"/v1/chat/completions", "a", `{"model":"gpt-4o","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`)
	r.Headers = append(r.Headers, [2]string{"x-priority", class})
	return w.Open(r)
}

func reasonOf(x *filtertest.Exchange) string {
	if x.Reply == nil {
		return ""
	}
	return x.Reply.Headers.Get("x-weir-reason")
}

// refuse has the provider refuse a call.
func refuseCall(t *testing.T, x *filtertest.Exchange, status int, body string, headers ...[2]string) {
	t.Helper()
	if !x.Sent {
		t.Fatalf("not sent: %+v", x.Reply)
	}
	x.Respond(status, body == "", append(headers, [2]string{"content-type", "application/json"})...)
	if body != "" {
		x.Chunk([]byte(body), true)
	}
	x.Close()
}

// A Retry-After closes the pool for all workers, from the next call on, for just as long; other pools stay open, and one that
// goes by no answers too. Where the pool has no record, the other workers hear of it at their next tick.
func TestGate(t *testing.T) {
	both(t, 2, gatePolicy, func(t *testing.T, p *filtertest.Process) {
		for _, provider := range []string{"openai", "free"} {
			refuseCall(t, callAs(p.Worker(0), provider, "hasty"), 429, "", [2]string{"retry-after", "3"})
			opens := p.Clock + 3e9
			if provider == "free" {
				p.Sleep(20 * time.Millisecond)
			}
			for i := range 2 {
				x := callAs(p.Worker(i), provider, "hasty")
				ms, _ := strconv.Atoi(x.Reply.Headers.Get("retry-after-ms"))
				if reasonOf(x) != "provider_cooling" || x.Reply.Status != 429 || ms < 2980 || ms > 4000 || x.Reply.Headers.Get("x-should-retry") != "true" {
					t.Fatalf("%s, worker %d: %+v", provider, i, x.Reply)
				}
			}
			if x := callAs(p.Worker(1), "deaf", "hasty"); x.Sent {
				refuseCall(t, x, 429, "", [2]string{"retry-after", "3"})
			}
			if x := callAs(p.Worker(1), "deaf", "hasty"); !x.Sent {
				t.Errorf("adapt: off: %+v", x.Reply)
			}
			p.Sleep(time.Duration(opens-p.Clock) - time.Millisecond)
			if x := callAs(p.Worker(1), provider, "hasty"); x.Sent {
				t.Errorf("%s opened too early", provider)
			}
			p.Sleep(time.Millisecond)
			for i := range 2 {
				x := callAs(p.Worker(i), provider, "hasty")
				if !x.Sent {
					t.Fatalf("%s, worker %d: not open again: %+v", provider, i, x.Reply)
				}
				x.Answer(200, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
			}
		}
		if n := p.Metric("weir_provider_refusals_total.class.congestion"); n != 4 {
			t.Errorf("%d refusals counted", n)
		}
		if log := strings.Join(p.Logs, "\n"); !strings.Contains(log, "weir: provider openai, models gpt-*: closed for 3s (provider_cooling)") {
			t.Error(log)
		}
	})
}

// Who waits, waits for a closed pool as for a limit, and goes when it opens. An error in a stream whose status was good closes
// like any other, and so does a 503 that says for how long.
func TestGateHoldsWaiting(t *testing.T) {
	both(t, 1, gatePolicy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		refuseCall(t, callAs(w, "openai", "batch"), 503, `{"error":{"message":"busy"}}`, [2]string{"retry-after-ms", "500"})
		x := callAs(w, "openai", "batch")
		if !held(x) {
			t.Fatalf("sent %v, %+v", x.Sent, x.Reply)
		}
		p.Sleep(480 * time.Millisecond)
		if !held(x) {
			t.Fatal("it went too early")
		}
		p.Sleep(40 * time.Millisecond)
		if !x.Sent {
			t.Fatalf("it was not let go: %+v", x.Reply)
		}
		x.Respond(200, false, [2]string{"content-type", "text/event-stream"})
		x.Chunk([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"), false)
		x.Chunk([]byte("data: {\"error\":{\"code\":\"insufficient_quota\",\"message\":\"m\"}}\n\n"), true)
		x.Close()
		y := callAs(w, "openai", "hasty")
		ms, _ := strconv.Atoi(y.Reply.Headers.Get("retry-after-ms"))
		if reasonOf(y) != "quota_exhausted" || y.Reply.Headers.Get("x-should-retry") != "false" || ms < 60_000 || ms > 72_000 {
			t.Errorf("after an exhausted quota: %+v", y.Reply)
		}
	})
}

// A refusal that says nothing of a time leaves 70 % of the rate, once for all that were on their way; after 30 s in which what is
// left was used, there is more again.
func TestRateFollows(t *testing.T) {
	both(t, 2, gatePolicy, func(t *testing.T, p *filtertest.Process) {
		turn := 0
		sentIn := func(seconds int) (n int) { // asks 20 times a second
			for range seconds * 20 {
				turn++
				if x := callAs(p.Worker(turn), "openai", "hasty"); x.Sent {
					n++
					x.Answer(200, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
				}
				p.Sleep(50 * time.Millisecond)
			}
			return n
		}
		sentIn(12) // the burst is used up
		if n := sentIn(10); n < 98 || n > 102 {
			t.Fatalf("%d in 10 s at 10 a second", n)
		}
		a, b := callAs(p.Worker(0), "openai", "hasty"), callAs(p.Worker(1), "openai", "hasty")
		for ; !b.Sent; b = callAs(p.Worker(1), "openai", "hasty") {
			p.Sleep(50 * time.Millisecond)
		}
		for _, x := range []*filtertest.Exchange{a, b} {
			if x.Sent {
				refuseCall(t, x, 429, `{"error":{"code":"rate_limit_exceeded","message":"requests per min"}}`)
			}
		}
		sentIn(2)
		if n := sentIn(10); n < 68 || n > 72 {
			t.Errorf("%d in 10 s at 70%% of 10 a second", n)
		}
		sentIn(22)
		if n := sentIn(10); n < 73 || n > 77 {
			t.Errorf("%d in 10 s at 75%% of 10 a second", n)
		}
	})
}

// Limits that a provider's headers tell are logged, once for all workers.
func TestLimitsAreShown(t *testing.T) {
	both(t, 2, gatePolicy, func(t *testing.T, p *filtertest.Process) {
		for i := range 4 {
			x := callAs(p.Worker(i), "openai", "hasty")
			x.Respond(200, false, [2]string{"content-type", "application/json"}, [2]string{"x-ratelimit-limit-requests", "500"},
				[2]string{"x-ratelimit-remaining-requests", "499"}, [2]string{"x-ratelimit-reset-requests", "120ms"})
			x.Chunk([]byte(`{"usage":{"prompt_tokens":1,"completion_tokens":1}}`), true)
			x.Close()
			p.Sleep(2 * time.Second)
		}
		n := strings.Count(strings.Join(p.Logs, "\n"), "weir: provider openai, models gpt-*: it says that its limit is 500 rpm")
		if n != 1 {
			t.Errorf("shown %d times: %v", n, p.Logs)
		}
	})
}

// A pool that is open costs a request no host call more than its limits do.
func TestOpenGatesCostNothing(t *testing.T) {
	p, err := filtertest.NewProcess(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Configure([]byte(gatePolicy)); err != nil {
		t.Fatal(err)
	}
	p.Sleep(2 * time.Second) // the worker looks after its pools
	calls := 0
	p.Fail = func(call string) bool {
		if strings.HasSuffix(call, "shared_data") {
			calls++
		}
		return false
	}
	list := func(provider string) *filtertest.Exchange { // a call of which nothing is counted but that it was there
		calls = 0
		return p.Worker(0).Open(filtertest.Request{Method: "GET", Path: "/" + provider + "/v1/models"})
	}
	for provider, want := range map[string]int{"deaf": 2, "free": 0} {
		x := list(provider)
		if !x.Sent || calls != want {
			t.Errorf("%s: %d accesses to shared data, want %d: %+v", provider, calls, want, x.Reply)
		}
	}
	p.Fail = nil
	refuseCall(t, callAs(p.Worker(0), "free", "hasty"), 429, "", [2]string{"retry-after", "1"})
	p.Sleep(3 * time.Second)
	p.Fail = func(call string) bool { calls++; return false }
	if x := list("free"); !x.Sent || calls != 1 {
		t.Errorf("after it was closed: %d host calls, one for the headers is enough", calls)
	}
}

// What fails while a refusal is heeded leaves the call settled, and its slot free.
func TestRefusalThatIsNotHeeded(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","trust":["all"],"providers":{"openai":{"upstream":"http://openai.test","models":{"*":{"in_flight":"1"}}}}}`
	p, err := filtertest.NewProcess(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Configure([]byte(policy)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // the host call that fails is another one each time
		x := callAs(p.Worker(0), "openai", "")
		if !x.Sent {
			t.Fatalf("call %d: %+v", i, x.Reply)
		}
		x.Respond(429, false)
		failed := false
		p.Fail = func(call string) bool {
			fail := !failed && call == []string{"get_shared_data", "response_body", "set_shared_data"}[i]
			failed = failed || fail
			return fail
		}
		x.Chunk([]byte(`{"error":{"code":"insufficient_quota"}}`), true)
		x.Close()
		if p.Fail = nil; !failed {
			t.Fatalf("%d: nothing failed", i)
		}
		p.Sleep(2 * time.Minute)
	}
}
