// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// waitPolicy admits one request a second at the provider; two classes wait, one does not.
const waitPolicy = `{"apiVersion":"weir/v1","trust":["all"],
	"providers":{"openai":{"upstream":"http://openai.test","models":{"gpt-*":{"rps":"1","burst":"100%"},"*":{"rps":"100"}}}},
	"limits":{"tenant":{"slow":{"rps":"1","burst":"100%"},"default":{"rps":"100"}}},
	"classes":{"urgent":{"priority":3,"on_limit":"queue","wait":"10s"},"interactive":{"priority":2},"batch":{"priority":1,"on_limit":"queue","wait":"5s"}},
	"queue":{"entries":"3"}}`

func classed(tenant, class, model string) filtertest.Request {
	r := request("/openai/v1/chat/completions", tenant, fmt.Sprintf(`{"model":%q,"max_tokens":1,"messages":[]}`, model))
	r.Headers = append(r.Headers, [2]string{"x-priority", class})
	return r
}

// held says whether a request waits.
func held(x *filtertest.Exchange) bool { return !x.Sent && x.Reply == nil }

// A request waits until the limit has room, and leaves then as it would have left at once.
func TestWaits(t *testing.T) {
	both(t, 1, waitPolicy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		if !w.Open(classed("a", "batch", "gpt-4o")).Sent {
			t.Fatal("the first must go at once")
		}
		x := w.Open(classed("a", "batch", "gpt-4o"))
		if !held(x) {
			t.Fatalf("sent %v, %+v", x.Sent, x.Reply)
		}
		p.Sleep(900 * time.Millisecond)
		if !held(x) {
			t.Fatal("it did not wait")
		}
		p.Sleep(200 * time.Millisecond)
		if !x.Sent || string(x.Body) != `{"model":"gpt-4o","max_tokens":1,"messages":[]}` || x.Upstream("x-tenant") != "" {
			t.Errorf("sent %v, %s %v", x.Sent, x.Body, x.Headers)
		}
		x.Answer(200, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
		if x := w.Open(classed("a", "interactive", "gpt-4o")); x.Reply == nil || x.Reply.Headers.Get("x-weir-reason") != "limit_exceeded" {
			t.Errorf("a class that does not wait: %+v", x.Reply)
		}
	})
}

// Higher classes go first, also those that come later; who comes later in a class waits behind it; who does not wait passes
// nobody of its own or a higher class.
func TestWaitingOrder(t *testing.T) {
	both(t, 1, waitPolicy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		w.Open(classed("a", "batch", "gpt-4o"))
		low, low2 := w.Open(classed("a", "batch", "gpt-4o")), w.Open(classed("b", "batch", "gpt-4o"))
		high := w.Open(classed("a", "urgent", "gpt-4o"))
		if x := w.Open(classed("a", "urgent", "gpt-4o")); x.Reply == nil || x.Reply.Status != 429 || x.Reply.Headers.Get("x-weir-reason") != "queue_full" {
			t.Errorf("the fourth: %+v", x.Reply)
		}
		if x := w.Open(classed("c", "interactive", "other")); !x.Sent {
			t.Errorf("another pool is not concerned: %+v", x.Reply)
		}
		p.Sleep(1100 * time.Millisecond)
		if !high.Sent || low.Sent || low2.Sent {
			t.Errorf("after a second: %v %v %v", high.Sent, low.Sent, low2.Sent)
		}
		p.Sleep(1100 * time.Millisecond)
		if x := w.Open(classed("a", "interactive", "gpt-4o")); x.Sent {
			t.Error("it passed nobody, but took what the first of the line waited for")
		}
		if !low.Sent || low2.Sent {
			t.Errorf("after two seconds: %v %v", low.Sent, low2.Sent)
		}
		p.Sleep(1100 * time.Millisecond)
		if !low2.Sent {
			t.Error("the last did not go")
		}
	})
}

// Who has waited as long as it may is told so, in time for its caller; who would have to wait longer is told at once.
func TestWaitingEnds(t *testing.T) {
	both(t, 1, waitPolicy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		w.Open(classed("a", "batch", "gpt-4o"))
		first, second := w.Open(classed("a", "batch", "gpt-4o")), classed("a", "batch", "gpt-4o")
		second.Headers = append(second.Headers, [2]string{"x-stainless-timeout", "1.5"})
		x := w.Open(second)
		if !held(first) || !held(x) {
			t.Fatal("they do not wait")
		}
		p.Sleep(1340 * time.Millisecond)
		if !first.Sent || !held(x) {
			t.Errorf("the first: %v; the second: %+v", first.Sent, x.Reply)
		}
		p.Sleep(40 * time.Millisecond)
		if x.Reply == nil || x.Reply.Status != 429 || x.Reply.Headers.Get("x-weir-reason") != "queue_timeout" || x.Reply.Headers.Get("retry-after") == "" {
			t.Errorf("after nine tenths of 1.5 s: %+v", x.Reply)
		}
		for _, h := range [][2]string{{"x-weir-deadline", "100ms"}, {"x-stainless-read-timeout", "0.1"}} {
			soon := classed("a", "batch", "gpt-4o")
			soon.Headers = append(soon.Headers, h)
			if x := w.Open(soon); x.Reply == nil || x.Reply.Headers.Get("x-weir-reason") != "queue_timeout" {
				t.Errorf("a caller that is gone before, as %s says: %+v", h[0], x.Reply)
			}
		}
	})
}

// A caller that leaves while it waits is never sent, holds up nobody and is charged nothing.
func TestCallerLeavesTheLine(t *testing.T) {
	both(t, 1, waitPolicy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		w.Open(classed("a", "batch", "gpt-4o"))
		gone, next := w.Open(classed("a", "urgent", "gpt-4o")), w.Open(classed("a", "batch", "gpt-4o"))
		p.Sleep(500 * time.Millisecond)
		gone.Close()
		p.Sleep(600 * time.Millisecond)
		if gone.Sent || !next.Sent {
			t.Errorf("gone: %v, next: %v", gone.Sent, next.Sent)
		}
		for range 2000 { // nothing stays behind
			x := w.Open(classed("a", "batch", "gpt-4o"))
			if !held(x) {
				t.Fatalf("%+v", x.Reply)
			}
			x.Close()
		}
	})
}

// Who waits for a limit of its own holds up nobody else.
func TestOwnLimitHoldsUpNobody(t *testing.T) {
	both(t, 1, waitPolicy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		w.Open(classed("slow", "batch", "other"))
		x := w.Open(classed("slow", "batch", "other"))
		if !held(x) {
			t.Fatalf("%+v", x.Reply)
		}
		for i := range 5 {
			for _, class := range []string{"interactive", "batch", "urgent"} {
				if y := w.Open(classed(fmt.Sprint("t", i), class, "other")); !y.Sent {
					t.Errorf("class %s: %+v", class, y.Reply)
				}
			}
		}
		p.Sleep(1100 * time.Millisecond)
		if !x.Sent {
			t.Error("the one that waited did not go")
		}
	})
}

// What waits when the policy changes goes by the policy that it came under.
func TestWaitingOverAChange(t *testing.T) {
	both(t, 1, waitPolicy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		w.Open(classed("a", "batch", "gpt-4o"))
		x := w.Open(classed("a", "batch", "gpt-4o"))
		if err := p.Configure([]byte(onePolicy)); err != nil {
			t.Fatal(err)
		}
		p.Sleep(1200 * time.Millisecond)
		if !x.Sent {
			t.Errorf("it does not go: %+v", x.Reply)
		}
	})
}

// A full queue refuses who would have to wait, and nobody for whom there is room: neither when it is full of who waits for limits
// of their own, nor of lower classes.
func TestFullQueueRefusesNobodyWhoNeedNotWait(t *testing.T) {
	both(t, 2, waitPolicy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		w.Open(classed("slow", "batch", "other"))
		for range 3 {
			if x := w.Open(classed("slow", "batch", "other")); !held(x) {
				t.Fatalf("%+v", x.Reply)
			}
		}
		for i, class := range []string{"batch", "interactive", "urgent"} {
			if x := w.Open(classed("a", class, "other")); !x.Sent || p.Worker(1).Open(classed("b", class, "other")).Reply != nil {
				t.Errorf("class %s (%d), for which there is room: %+v", class, i, x.Reply)
			}
		}
		for class, want := range map[string]string{"batch": "queue_full", "interactive": "limit_exceeded"} {
			if x := w.Open(classed("slow", class, "other")); reason(x) != want {
				t.Errorf("one more of the same tenant, %s: %s", class, reason(x))
			}
		}
	})
	both(t, 1, waitPolicy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		w.Open(classed("a", "batch", "gpt-4o"))
		for range 3 {
			w.Open(classed("a", "batch", "gpt-4o"))
		}
		p.Sleep(time.Second)
		p.Clock += int64(40 * time.Millisecond) // there is room, and no tick has been yet
		x, y := w.Open(classed("a", "urgent", "gpt-4o")), w.Open(classed("a", "urgent", "gpt-4o"))
		if !x.Sent || reason(y) != "queue_full" {
			t.Errorf("a higher class: %+v; one that would have to wait: %s", x.Reply, reason(y))
		}
	})
}

// An environment that waits for its share holds up no other environment, not even of the same user.
func TestOwnEnvironmentHoldsUpNobody(t *testing.T) {
	environments := `{"apiVersion":"weir/v1","trust":["all"],
	"providers":{"openai":{"upstream":"http://openai.test","models":{"*":{"rps":"10","burst":"100%"}}}},
	"limits":{"environment":{"ci":{"share":"10%"},"production":{"share":"90%"}},"user":{"default":{"rps":"100"}}},
	"classes":{"batch":{"on_limit":"queue","wait":"9s"}}}`
	both(t, 1, environments, func(t *testing.T, p *filtertest.Process) {
		open := func(environment string) *filtertest.Exchange {
			r := classed("a", "batch", "gpt-4o")
			r.Headers = append(r.Headers, [2]string{"x-environment", environment})
			return p.Worker(0).Open(r)
		}
		open("ci")
		if ci, production := open("ci"), open("production"); !held(ci) || !production.Sent {
			t.Errorf("ci waits: %v, production goes: %v", held(ci), production.Sent)
		}
	})
}

// Users of one tenant hold each other up no more than tenants do; who waits for the tenant's limit holds up all of them.
func TestOwnersOfALine(t *testing.T) {
	users := `{"apiVersion":"weir/v1","trust":["all"],
	"providers":{"openai":{"upstream":"http://openai.test","models":{"*":{"rps":"100"}}}},
	"limits":{"tenant":{"a":{"rps":"4","burst":"100%"}},"user":{"default":{"rps":"1","burst":"100%"}}},
	"classes":{"batch":{"on_limit":"queue","wait":"9s"}}}`
	both(t, 1, users, func(t *testing.T, p *filtertest.Process) {
		open := func(user string) *filtertest.Exchange {
			r := classed("a", "batch", "gpt-4o")
			r.Headers = append(r.Headers, [2]string{"x-user", user})
			return p.Worker(0).Open(r)
		}
		open("u1")
		waits := open("u1")
		if u2, u3, u4 := open("u2"), open("u3"), open("u4"); !held(waits) || !u2.Sent || !u3.Sent || !u4.Sent {
			t.Errorf("users hold each other up: %v %v %v", u2.Sent, u3.Sent, u4.Sent)
		}
		if u5 := open("u5"); !held(u5) {
			t.Error("the tenant's limit does not hold")
		}
		p.Sleep(1200 * time.Millisecond)
		if !waits.Sent {
			t.Error("it does not go")
		}
	})
}

// Whoever is answered in the callback of another one stops that: Envoy lets no stream go on in whose callback a reply is sent, whatever
// the callback returns. So others are answered in the next tick.
func TestNobodyIsAnsweredInAnothersCallback(t *testing.T) {
	policy := `{"apiVersion":"weir/v1","trust":["all"],"providers":{"openai":{"upstream":"http://openai.test","models":{"*":{"rps":"100"}}}},
		"limits":{"tenant":{"one":{"in_flight":"1"}}},"classes":{"batch":{"priority":1,"on_limit":"queue","wait":"5s"}}}`
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		w.Open(classed("one", "batch", "gpt-4o"))
		waits := w.Open(classed("one", "batch", "gpt-4o"))
		if !held(waits) {
			t.Fatalf("%+v", waits.Reply)
		}
		p.Clock += int64(6 * time.Second) // and no tick so far
		next := w.Open(classed("another", "batch", "gpt-4o"))
		if !next.Sent || waits.Reply != nil {
			t.Errorf("sent %v, %+v; the other one %+v", next.Sent, next.Reply, waits.Reply)
		}
		p.Sleep(20 * time.Millisecond)
		if waits.Reply == nil || waits.Reply.Headers.Get("x-weir-reason") != "queue_timeout" {
			t.Errorf("after a tick: %+v", waits.Reply)
		}
	})
}
