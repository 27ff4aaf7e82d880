// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// Faults that were found where things meet that are each tested alone.

const betweenPolicy = `{"apiVersion":"weir/v1","trust":["all"],"log":{"admit":"info","deny":"info"},"queue":{"entries":"2"},"providers":{
		"openai":{"upstream":"http://openai.test","stream":{"include_usage":"add"},"models":{"big":{"tpm":"1000","burst":"100%"},"few":{"rpm":"2","burst":"100%"},"*":{"rpm":"1000"}}},
		"anthropic":{"upstream":"http://anthropic.test","models":{"big":{"tpm":"1000","burst":"100%"}}},
		"free":{"upstream":"http://free.test","dialect":"openai"},
		"jobs":{"upstream":"http://jobs.test","dialect":"generic","models":{"*":{"rpm":"1","burst":"100%"}}}},
	"limits":{"tenant":{"default":{"in_flight":"20"},"small":{"in_flight":"1"}},"tree":{"default":{"retries":"1","ttl":"1h","in_flight":"30"}}},
	"spill":{"big":{"provider":"jobs"}},
	"classes":{"high":{"priority":9,"on_limit":"queue","wait":"4m"},"low":{"priority":5,"on_limit":"queue","wait":"4m"},"spill":{"priority":1,"on_limit":"spill"}}}`

// call sends a call of a class.
func call(w *filtertest.Worker, class, path, tenant, body string, headers ...[2]string) *filtertest.Exchange {
	r := request(path, tenant, body)
	r.Headers = append(append(r.Headers, [2]string{"x-priority", class}), headers...)
	return w.Open(r)
}

// What no wait helps is refused at once, whoever waits: in the line it would hold up all others, and be told to come again.
func TestHopelessDoesNotWait(t *testing.T) {
	both(t, 1, betweenPolicy, func(t *testing.T, p *filtertest.Process) {
		w, tree := p.Worker(0), [2]string{"x-request-tree", "t"}
		again := [2]string{"x-stainless-retry-count", "1"}
		call(w, "high", chatPath, "a", bodyOf("x", 1, ""), tree, again).Close() // the tree's only retry
		first := call(w, "low", chatPath, "a", bodyOf("big", 900, ""))
		var waits []*filtertest.Exchange
		for i := range 2 { // with the second the queue is full
			waits = append(waits, call(w, "low", chatPath, "a", bodyOf("big", 500, "")))
			x := call(w, "high", chatPath, "a", bodyOf("big", 5000, ""))
			if reasonOf(x) != "request_too_large" && i == 0 {
				t.Errorf("%d wait: a call that never fits: %+v", i+1, x.Reply)
			}
			x = call(w, "high", chatPath, "a", bodyOf("big", 500, ""), tree, again)
			if reasonOf(x) != "retry_budget_exhausted" || x.Reply.Headers.Get("x-should-retry") != "false" {
				t.Errorf("%d wait: a retry of a tree that has none left: %+v", i+1, x.Reply)
			}
		}
		first.Answer(400, `{}`)
		if p.Sleep(40 * time.Millisecond); !waits[0].Sent {
			t.Error("who waits is held up")
		}
	})
}

// Who panics in its turn is answered, and the next one goes.
func TestPanicInATurn(t *testing.T) {
	for _, onError := range []string{"deny", "allow"} {
		p, err := filtertest.NewProcess(nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Configure([]byte(strings.Replace(betweenPolicy, `"trust"`, `"on_error":"`+onError+`","trust"`, 1))); err != nil {
			t.Fatal(err)
		}
		first := call(p.Worker(0), "low", chatPath, "a", bodyOf("big", 900, ""))
		fails := call(p.Worker(0), "low", chatPath, "a", bodyOf("big", 900, `"stream":true,`))
		next := call(p.Worker(0), "low", chatPath, "a", bodyOf("big", 900, ""))
		failed := false
		p.Fail = func(call string) bool {
			now := !failed && call == "request_body" // which a body that is changed is read by
			failed = failed || now
			return now
		}
		first.Answer(400, `{}`)
		p.Sleep(100 * time.Millisecond)
		if sent := onError == "allow"; !failed || fails.Sent != sent || !sent && reasonOf(fails) != "internal" {
			t.Errorf("%s: failed %v, sent %v: %+v", onError, failed, fails.Sent, fails.Reply)
		}
		if !next.Sent {
			t.Errorf("%s: the next one waits for ever", onError)
		}
		for _, x := range []*filtertest.Exchange{fails, next} {
			x.Close()
		}
		if n, waiting, places, _ := p.Worker(0).VM().Held(); n+waiting+places != 0 {
			t.Errorf("%s: %d in flight, %d that wait, %d places", onError, n, waiting, places)
		}
	}
}

// An attempt that was sent counts, whatever fails before the next one.
func TestPanicBetweenAttempts(t *testing.T) {
	for k := range 12 {
		p, err := filtertest.NewProcess(nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Configure([]byte(betweenPolicy)); err != nil {
			t.Fatal(err)
		}
		if err := p.CountAttempts(); err != nil {
			t.Fatal(err)
		}
		x := call(p.Worker(0), "spill", chatPath, "a", bodyOf("few", 1, ""))
		x.Attempt()
		x.Fails(503)
		sent := 1
		p.Fail = func(call string) bool { k--; return k == -1 }
		if x.Attempt() {
			sent++
		}
		p.Fail = nil
		x.Close()
		p.Sleep(10 * time.Second) // the provider is asked again
		for range 3 {
			if y := call(p.Worker(0), "spill", chatPath, "a", bodyOf("few", 1, "")); y.Sent {
				sent++
			}
		}
		if sent > 2 {
			t.Errorf("%d were sent of the two that may be", sent)
		}
	}
}

// A policy that only watches lets everybody pass, also while workers that do not have it yet have somebody wait.
func TestShadowYieldsToNobody(t *testing.T) {
	both(t, 2, betweenPolicy, func(t *testing.T, p *filtertest.Process) {
		call(p.Worker(0), "low", chatPath, "a", bodyOf("big", 900, ""))
		if x := call(p.Worker(0), "high", chatPath, "a", bodyOf("big", 900, "")); x.Sent {
			t.Fatal("it does not wait")
		}
		p.Sleep(20 * time.Millisecond)
		for _, change := range [][2]string{{`"trust"`, `"mode":"shadow","trust"`}, {`"tpm":"1000",`, `"tpm":"1000","mode":"shadow",`}} {
			if err := p.Worker(1).Configure([]byte(strings.Replace(betweenPolicy, change[0], change[1], 1))); err != nil {
				t.Fatal(err)
			}
			if x := call(p.Worker(1), "low", chatPath, "a", bodyOf("big", 10, "")); !x.Sent {
				t.Errorf("%s: %+v", change[1], x.Reply)
			}
		}
	})
}

// A call that went elsewhere, and is refused when Envoy sends it again, is told so in the way of the API that was asked, and logged
// as what it is.
func TestRefusedRetryOfASpilledCall(t *testing.T) {
	both(t, 1, betweenPolicy, func(t *testing.T, p *filtertest.Process) {
		if err := p.CountAttempts(); err != nil {
			t.Fatal(err)
		}
		const messages = "/anthropic/v1/messages"
		call(p.Worker(0), "low", messages, "a", bodyOf("big", 900, ""))
		x := call(p.Worker(0), "spill", messages, "a", bodyOf("big", 900, ""))
		if x.Upstream(":path") != "/jobs/v1/messages" || !x.Attempt() || !x.Fails(503) {
			t.Fatalf("%+v", x)
		}
		if x.Attempt() || field(t, x.Reply.Body, "type") != "error" {
			t.Fatalf("%+v", x.Reply)
		}
		x.Close()
		if line := p.Logs[len(p.Logs)-1]; !strings.Contains(line, "decision=deny reason=limit_exceeded") || !strings.Contains(line, "status=429") {
			t.Error(line)
		}
	})
}

// A pool without a limit that its provider has closed is closed for who waits for something else, and for Envoy's next attempt.
func TestClosedForWhoIsTriedAgain(t *testing.T) {
	both(t, 1, betweenPolicy, func(t *testing.T, p *filtertest.Process) {
		if err := p.CountAttempts(); err != nil {
			t.Fatal(err)
		}
		const free = "/free/v1/chat/completions"
		first := call(p.Worker(0), "low", free, "small", bodyOf("x", 1, ""))
		waits := call(p.Worker(0), "low", free, "small", bodyOf("x", 1, ""))
		retry := call(p.Worker(0), "low", free, "a", bodyOf("x", 1, ""))
		if !first.Sent || waits.Sent || !retry.Attempt() || !retry.Fails(503) {
			t.Fatal("not what is to be tried")
		}
		first.Attempt()
		first.Fails(429, [2]string{"retry-after", "5"})
		first.Respond(429, true, [2]string{"retry-after", "5"})
		first.Close()
		if retry.Attempt() || reasonOf(retry) != "provider_cooling" {
			t.Errorf("the next attempt: %+v", retry.Reply)
		}
		if p.Sleep(4900 * time.Millisecond); waits.Sent {
			t.Error("who waited was sent to a provider that has closed")
		}
		if p.Sleep(200 * time.Millisecond); !waits.Sent {
			t.Errorf("who waits is not sent when it has opened: %+v", waits.Reply)
		}
	})
}

// A fan-out that fails half-way holds no calls in flight.
func TestPanicInAFanOut(t *testing.T) {
	for k := range 60 {
		p, err := filtertest.NewProcess(nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Configure([]byte(betweenPolicy)); err != nil {
			t.Fatal(err)
		}
		p.Fail = func(call string) bool { k--; return k == -1 }
		x := p.Worker(0).Open(reserve(`{"provider":"openai","model":"x","branches":3,"input_tokens":20,"max_tokens":100}`))
		if x.Reply.Status == 200 {
			p.Sleep(50 * time.Millisecond)
			branch(p.Worker(0), field(t, x.Reply.Body, "reservation").(string), 100).Answer(200, `{}`)
		}
		p.Sleep(31 * time.Second)
		if n, _, _, _ := p.Worker(0).VM().Held(); n != 0 {
			t.Errorf("%d calls are held", n)
		}
	}
}
