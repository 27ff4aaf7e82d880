// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// A burst over all workers never gets more than the limit, and refused requests cost nothing.
func TestBurstOverWorkers(t *testing.T) {
	policy := strings.Replace(onePolicy, `"tpm":"100000","burst":"100%"`, `"tpm":"10000"`, 1)
	both(t, 4, policy, func(t *testing.T, p *filtertest.Process) {
		sent := 0
		for i := range 200 {
			if p.Worker(i).Open(chat("a", "hi", 500-input)).Sent {
				sent++
			}
		}
		if sent != 5 { // the burst is a quarter of the limit
			t.Errorf("%d of 500 tokens each were sent at once, want 5", sent)
		}
		for range 600 {
			p.Sleep(100 * time.Millisecond)
			for i := range 4 {
				if p.Worker(i).Open(chat("a", "hi", 500-input)).Sent {
					sent++
				}
			}
		}
		if sent != 20 {
			t.Errorf("%d were sent in a minute, want 20", sent)
		}
	})
}

// In-flight slots hold across workers, come back at every kind of end, and by their lease when a worker dies.
func TestInFlightOverWorkers(t *testing.T) {
	policy := strings.Replace(onePolicy, `"tpm":"100000"`, `"tpm":"10000000","in_flight":"3"`, 1)
	both(t, 2, policy, func(t *testing.T, p *filtertest.Process) {
		ends := []func(x *filtertest.Exchange){
			func(x *filtertest.Exchange) { x.Answer(200, `{}`) },
			func(x *filtertest.Exchange) { x.Answer(500, ``) },
			func(x *filtertest.Exchange) { x.Close() },
			func(x *filtertest.Exchange) {
				x.Respond(200, false, [2]string{"content-type", "text/event-stream"})
				x.Chunk([]byte("data: {}"), false)
				x.Close()
				x.Close()
			},
		}
		for round := range 8 {
			var open []*filtertest.Exchange
			for i := range 3 {
				x := p.Worker(i + round).Open(chat("a", "hi", 10))
				if !x.Sent {
					t.Fatalf("round %d: %d in flight, refused: %+v", round, i, x.Reply)
				}
				open = append(open, x)
			}
			x := p.Worker(round).Open(chat("a", "hi", 10))
			if x.Reply == nil || x.Reply.Headers.Get("x-weir-dimension") != "in_flight" || x.Reply.Headers.Get("retry-after") == "" {
				t.Fatalf("a fourth: %+v", x.Reply)
			}
			p.Sleep(time.Minute) // leases are renewed
			if x := p.Worker(round + 1).Open(chat("a", "hi", 10)); x.Sent {
				t.Fatal("a lease ended under a call that is open")
			}
			for _, x := range open {
				ends[round%len(ends)](x)
				x.Close()
			}
		}
		for range 3 {
			p.Worker(0).Open(chat("b", "hi", 10))
		}
		p.Worker(0).Dead = true
		if p.Worker(1).Open(chat("b", "hi", 10)).Sent {
			t.Fatal("slots of a dead worker are free at once: how would anybody know that it is dead?")
		}
		p.Sleep(16 * time.Second)
		if !p.Worker(1).Open(chat("b", "hi", 10)).Sent {
			t.Error("slots of a dead worker do not come back")
		}
	})
}

// A new policy keeps what was counted, for requests that are open as well.
func TestLivePolicyChange(t *testing.T) {
	both(t, 2, onePolicy, func(t *testing.T, p *filtertest.Process) {
		a := p.Worker(0).Open(chat("a", "hi", 40_000-input))
		b := p.Worker(1).Open(chat("a", "hi", 40_000-input))
		if err := p.Configure([]byte(strings.Replace(onePolicy, "100000", "50000", 1))); err != nil {
			t.Fatal(err)
		}
		if x := p.Worker(0).Open(chat("a", "hi", 1000)); x.Reply == nil || x.Reply.Headers.Get("x-ratelimit-limit-tokens") != "50000" {
			t.Errorf("80,000 of 50,000 are used, but: %+v", x.Reply)
		}
		a.Answer(400, `{}`)
		b.Answer(400, `{}`)
		p.Sleep(20 * time.Second) // the bucket, which was over its new size, refills
		if x := p.Worker(1).Open(chat("a", "hi", 10_000)); !x.Sent {
			t.Errorf("all was given back, but: %+v", x.Reply)
		}
		if err := p.Configure([]byte(`{"apiVersion":"weir/v1","providers":{}}`)); err == nil {
			t.Error("a bad policy was taken")
		}
		if x := p.Worker(1).Open(chat("b", "hi", 10_000)); !x.Sent {
			t.Errorf("after a bad policy: %+v", x.Reply)
		}
	})
}

// Tools have buckets of their own, on calls of any provider.
func TestToolTier(t *testing.T) {
	policy := strings.Replace(onePolicy, `"limits":{`, `"limits":{"tool":{"search":{"rps":"2","burst":"100%"},"shy":{"rps":"1","mode":"shadow"}},`, 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		call := func(tool string) *filtertest.Exchange {
			return p.Worker(0).Open(filtertest.Request{Path: "/tool/x", Headers: [][2]string{{"x-tool", tool}, {"x-tenant", "a"}}, Body: []byte("{}")})
		}
		for i := range 3 {
			x := call("search")
			if x.Sent != (i < 2) {
				t.Errorf("call %d: %+v", i, x.Reply)
			}
			if x.Reply != nil && (x.Reply.Headers.Get("x-weir-tier") != "tool" || field(t, x.Reply.Body, "error.type") != "requests") {
				t.Errorf("%+v", x.Reply)
			}
			if x := call("other"); !x.Sent {
				t.Errorf("a tool without a limit: %+v", x.Reply)
			}
			if x := call("shy"); !x.Sent {
				t.Errorf("a tool in shadow mode: %+v", x.Reply)
			}
		}
		if got := p.Metric("weir_shadow_denials_total.decision.deny.reason.limit_exceeded.tier.tool.dimension.rps"); got != 2 {
			t.Errorf("%d shadow denials, want 2: %v", got, p.Metrics)
		}
	})
}

// One switch turns everything into shadow, or off.
func TestModes(t *testing.T) {
	for _, mode := range []string{"shadow", "off"} {
		policy := strings.Replace(onePolicy, `"trust"`, `"mode":"`+mode+`","trust"`, 1)
		both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
			for i := range 3 {
				x := p.Worker(0).Open(chat("a", "hi", 60_000))
				if !x.Sent || x.Upstream("x-tenant") != "" {
					t.Errorf("%d: %+v", i, x)
				}
			}
			if x := p.Worker(0).Open(request("/openai/v1/unheard", "a", "{}")); !x.Sent {
				t.Errorf("%+v", x.Reply)
			}
			want := map[string]int{"shadow": 3, "off": 0}[mode]
			if got := p.Metric("weir_shadow_denials_total"); got != want {
				t.Errorf("%s: %d shadow denials, want %d: %v", mode, got, want, p.Metrics)
			}
		})
	}
}

// A callback that panics is counted, fails to the side the policy says, and leaks nothing.
func TestPanics(t *testing.T) {
	for _, call := range []string{"request_headers", "request_body", "get_shared_data", "set_shared_data"} {
		for _, onError := range []string{"deny", "allow"} {
			t.Run(call+" "+onError, func(t *testing.T) {
				policy := strings.Replace(onePolicy, `"trust"`, `"on_error":"`+onError+`","trust"`, 1)
				p, err := filtertest.NewProcess(nil, 1)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Configure([]byte(policy)); err != nil {
					t.Fatal(err)
				}
				for i := range 20 {
					once := true
					p.Fail = func(c string) bool {
						hit := c == call && once
						once = once && !hit
						return hit
					}
					x := p.Worker(0).Open(chat("a", "hi", 1000))
					p.Fail = nil
					if want := onError == "allow" && i < 10; x.Sent != want {
						t.Fatalf("%d: sent %v, want %v: %+v", i, x.Sent, want, x.Reply)
					}
					if x.Reply != nil && (x.Reply.Status != 503 || x.Reply.Headers.Get("x-weir-reason") != "internal") {
						t.Fatalf("%+v", x.Reply)
					}
					x.Close()
				}
				if got := p.Metric("weir_panics_total"); got != 20 {
					t.Errorf("%d panics counted: %v", got, p.Metrics)
				}
				if got := used(t, p, "a"); got != 0 {
					t.Errorf("%d tokens are held", got)
				}
			})
		}
	}
}

// Panics in the answer leave it as it is, and what the call held comes back.
func TestPanicsInTheAnswer(t *testing.T) {
	policy := strings.Replace(onePolicy, `"tpm":"100000"`, `"tpm":"100000","in_flight":"1"`, 1)
	for _, call := range []string{"response_headers", "response_body", "get_shared_data"} {
		p, err := filtertest.NewProcess(nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Configure([]byte(policy)); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			x := p.Worker(0).Open(chat(fmt.Sprint(call, i), "hi", 1000))
			if !x.Sent {
				t.Fatalf("%s: %+v", call, x.Reply)
			}
			once := true
			p.Fail = func(c string) bool {
				hit := c == call && once
				once = once && !hit
				return hit
			}
			x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
			p.Fail = nil
			p.Sleep(5 * time.Second)
			if x := p.Worker(0).Open(chat(fmt.Sprint(call, i), "hi", 10)); !x.Sent {
				t.Errorf("%s: a slot leaked: %+v", call, x.Reply)
			}
		}
	}
}
