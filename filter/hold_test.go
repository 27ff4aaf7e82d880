// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/weirproxy/weir/filter/filtertest"
)

// A policy in which one call a minute of each of the models m0 to m9 is admitted, and of which little of a body is read.
const holdPolicy = `{"apiVersion":"weir/v1","trust":["all"],"body":{"parse":"4KiB","hold":"64KiB"},
	"providers":{"openai":{"upstream":"http://openai.test","models":{"*":{"rpm":"1000"},"queued":{"rpm":"1","burst":"100%"},MODELS}}},
	"limits":{"tenant":{"default":{"tpm":"100000","burst":"100%","in_flight":"100"}}},
	"classes":{"normal":{"priority":1,"on_limit":"deny"},"patient":{"priority":2,"on_limit":"queue","wait":"2m"}}}`

func holding(edits ...string) string {
	var models []string
	for i := range 10 {
		models = append(models, fmt.Sprintf(`"m%d":{"rpm":"1","burst":"100%%"}`, i))
	}
	return strings.NewReplacer(append(edits, "MODELS", strings.Join(models, ","))...).Replace(holdPolicy)
}

// messages are so many bytes of a text, and what looks like a model and is none.
func messages(n int) string {
	return `"messages":[{"role":"user","content":"` + strings.Repeat(`\"model\":\"free\",\\`, n/20) + `"},{"model":"free","a":["}",{"model":"free"}]}]`
}

// long is a call whose body comes in pieces; length: it says how long it is.
func long(body string, piece int, length bool) filtertest.Request {
	r := request(chatPath, "a", body)
	r.Chunks = pieces(r.Body, piece)
	if length {
		r.Headers = append(r.Headers, [2]string{"content-length", fmt.Sprint(len(body))})
	}
	return r
}

// passes says that a call has left as it came.
func passes(t *testing.T, w *filtertest.Worker, r filtertest.Request) {
	t.Helper()
	x := w.Open(r)
	if long := len(r.Body) > 4<<10; x.FilterState("weir.long") == "1" != long || long && x.Upstream(":path") != r.Path {
		t.Errorf("%d bytes to %s are kept to be sent again: %v", len(r.Body), x.Upstream(":path"), !long)
	}
	if x.Sent {
		x.Answer(400, `{}`) // gives the tokens back
	}
	if !x.Sent || x.Reply != nil || !bytes.Equal(x.Body, r.Body) {
		t.Errorf("sent %v, %d of %d bytes, answered %+v", x.Sent, len(x.Body), len(r.Body), x.Reply)
	}
}

// refusedFor says that a call was refused, and why; it gives what the caller is told.
func refusedFor(t *testing.T, w *filtertest.Worker, r filtertest.Request, reason string) *filtertest.Exchange {
	t.Helper()
	x := w.Open(r)
	if reasonOf(x) != reason {
		t.Fatalf("sent %v, answered %+v, want %s", x.Sent, x.Reply, reason)
	}
	return x
}

// A model that stands behind what is read of a body is the one that the request is held to, in whichever pieces it comes.
func TestModelBehindTheMessages(t *testing.T) {
	for _, trailers := range []bool{false, true} {
		both(t, 1, holding(), func(t *testing.T, p *filtertest.Process) {
			w := p.Worker(0)
			for i, piece := range []int{1 << 20, 37, 1000, 4095, 4096, 4097, 20_000} {
				body := fmt.Sprintf(`{%s, "mod\u0065l" : "m%d","max_tokens":7}`, messages(40_000), i)
				r := long(body, piece, i%2 == 0)
				r.Trailers = trailers
				passes(t, w, r)
				if x := refusedFor(t, w, r, "limit_exceeded"); x.Reply.Headers.Get("x-weir-tier") != "provider" {
					t.Errorf("by %v", x.Reply.Headers)
				}
			}
		})
	}
}

// Of two models behind what is read, parsers take the one or the other. So they do of one in it and one behind it, when the
// request has left already: then it is cut off, and holds nothing any more.
func TestTwoModelsInALongBody(t *testing.T) {
	both(t, 1, holding(), func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		refusedFor(t, w, long(`{`+messages(40_000)+`,"model":"m0","model":"m1"}`, 1000, true), "unreadable_body")
		refusedFor(t, w, long(`{`+messages(40_000)+`,"model":"m0","x":1,"MODEL":"free"}`, 1000, true), "unreadable_body")
		passes(t, w, long(`{`+messages(40_000)+`,"model":"m0","model":"m0"}`, 1000, true))
		for i, end := range []string{`"model":"m1"`, `"Model":"m1"`, `"model":"` + strings.Repeat("m", 20_000) + `"`, strings.Repeat(`"n":1,`, 16_000) + `"y":1`} {
			x := refusedFor(t, w, long(`{"model":"free",`+messages(100_000)+`,`+end+`}`, 1000, i%2 == 0), "unreadable_body")
			if !x.Sent || x.Reply.Status != 400 || strings.Contains(x.Reply.Body, "two models") != (i < 2) {
				t.Errorf("%.40s: sent %v, %+v", end, x.Sent, x.Reply)
			}
			x.Close()
			if n := used(t, p, "a"); n != 0 {
				t.Errorf("%.40s: %d tokens count", end, n)
			}
			if n := w.VM(); n != nil && n.InFlight() != 0 {
				t.Errorf("%.40s: %d calls in flight", end, n.InFlight())
			}
		}
		passes(t, w, long(`{"model":"free",`+messages(100_000)+`,"model":"other"}`, 1000, true)) // both are held to the same
		passes(t, w, long(`{"model":"m5",`+messages(100_000)+`,"model":"m5"}`, 1000, true))
		refusedFor(t, w, long(`{"model":"m5",`+messages(100_000)+`}`, 1000, true), "limit_exceeded")
	})
	shadow := holding(`"trust"`, `"mode":"shadow","trust"`)
	both(t, 1, shadow, func(t *testing.T, p *filtertest.Process) {
		passes(t, p.Worker(0), long(`{"model":"free",`+messages(100_000)+`,"model":"m1"}`, 1000, true))
	})
}

// A request that waits with only the beginning of its body, and then names another model, waits no more.
func TestTwoModelsInABodyThatWaits(t *testing.T) {
	both(t, 1, holding(), func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		send := func(x *filtertest.Exchange, body string) {
			for _, piece := range pieces([]byte(body), 1000) {
				x.SendBody(piece, false)
			}
		}
		open := func() *filtertest.Exchange {
			r := long("", 1, false)
			r.Headers = append(r.Headers, [2]string{"x-priority", "patient"})
			return w.Start(r)
		}
		passes(t, w, long(`{"model":"queued",`+messages(10_000)+`}`, 1000, false))
		waits, other := open(), open()
		for _, x := range []*filtertest.Exchange{waits, other} {
			if send(x, `{"model":"queued",`+messages(30_000)); x.Sent || x.Reply != nil {
				t.Fatalf("it does not wait: sent %v, %+v", x.Sent, x.Reply)
			}
		}
		if send(waits, `,"model":"m1"}`); reasonOf(waits) != "unreadable_body" {
			t.Errorf("answered %+v", waits.Reply)
		}
		waits.Close()
		if p.Sleep(65e9); !other.Sent {
			t.Errorf("who waits behind it does not go: %+v", other.Reply)
		}
		if send(other, `,"model":"free"}`); reasonOf(other) != "unreadable_body" {
			t.Errorf("answered %+v", other.Reply)
		}
	})
}

// No more is held than body.hold, and what names no model by then is refused, with what to do about it; at once, if it says that
// it is longer. What names one goes on.
func TestHoldIsBounded(t *testing.T) {
	both(t, 1, holding(), func(t *testing.T, p *filtertest.Process) {
		w, hidden := p.Worker(0), `{`+messages(100_000)+`,"model":"m0"}`
		x := refusedFor(t, w, long(hidden, 1000, true), "unreadable_body")
		if x.Buffered > 5000 || x.Reply.Status != 400 || !strings.Contains(x.Reply.Body, "write the model before the messages, or have body.hold raised") {
			t.Errorf("%d bytes were held: %+v", x.Buffered, x.Reply)
		}
		if x = refusedFor(t, w, long(hidden, 1000, false), "unreadable_body"); x.Buffered < 64<<10 || x.Buffered > 65<<10 {
			t.Errorf("%d bytes were held", x.Buffered)
		}
		if x = w.Open(long(`{`+messages(40_000)+`,"model":"m0",`+messages(100_000)+`}`, 1000, false)); !x.Sent || x.Buffered > 65<<10 {
			t.Errorf("%d bytes were held: %+v", x.Buffered, x.Reply)
		}
		refusedFor(t, w, long(`{`+messages(40_000)+`,"model":"m0"}`, 1000, false), "limit_exceeded")
		refusedFor(t, w, long(`{`+messages(40_000)+`}`, 1000, false), "unreadable_body")
		passes(t, w, long(`{`+messages(1000)+`}`, 1000, false)) // all of it is read
		if x = w.Open(long(`{`+messages(40_000)+`} `+messages(40_000), 1000, false)); reasonOf(x) != "unreadable_body" || x.Buffered > 45_000 {
			t.Errorf("%d bytes of a body that is over were held: %+v", x.Buffered, x.Reply)
		}
	})
}

// Where it makes no difference which model it is, or the path names it, or nothing is refused, a long body streams through as ever.
func TestLongBodiesThatAreNotHeld(t *testing.T) {
	body := `{` + messages(100_000) + `,"model":"m0"}`
	for _, row := range []struct {
		policy, path string
		most         int
	}{
		{holding(`"queued":{"rpm":"1","burst":"100%"},MODELS`, `"*":{"tpm":"1000000"}`), chatPath, 6000},
		{holding(`"models":{"*":{"rpm":"1000"},"queued":{"rpm":"1","burst":"100%"},MODELS}`, `"models":{}`), chatPath, 6000},
		{holding(), "/openai/openai/deployments/m0/chat/completions", 6000},
		{holding(`"trust"`, `"on_error":"allow","trust"`), chatPath, 66_000},
		{holding(`"trust"`, `"mode":"shadow","trust"`), chatPath, 66_000},
	} {
		both(t, 1, row.policy, func(t *testing.T, p *filtertest.Process) {
			r := long(body, 1000, false)
			r.Path = row.path
			x := p.Worker(0).Open(r)
			if !x.Sent || !bytes.Equal(x.Body, r.Body) || x.Buffered > row.most {
				t.Errorf("%.200s: sent %v, %d bytes were held: %+v", row.policy, x.Sent, x.Buffered, x.Reply)
			}
		})
	}
	priced := holding(`"queued":{"rpm":"1","burst":"100%"},MODELS`, `"*":{"tpm":"1000000"}`, `"trust"`, `"prices":{"m0":{"input":1,"output":1}},"trust"`)
	both(t, 1, priced, func(t *testing.T, p *filtertest.Process) {
		refusedFor(t, p.Worker(0), long(body, 1000, true), "unreadable_body")
		passes(t, p.Worker(0), long(`{`+messages(40_000)+`,"model":"m0"}`, 1000, true))
	})
}

// Who asks may stand behind what is read, too.
func TestCallerBehindTheMessages(t *testing.T) {
	policy := holding(`"limits":{`, `"who":{"user":["body metadata.user"]},"limits":{"user":{"default":{"rpm":"1","burst":"100%"}},`)
	nothing := strings.Replace(policy, `"queued":{"rpm":"1","burst":"100%"},`, "", 1)
	for _, policy := range []string{policy, nothing} {
		both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
			w := p.Worker(0)
			of := func(user string) filtertest.Request {
				return long(`{"model":"free",`+messages(40_000)+`,"metadata":{"x":"{","user":"`+user+`"}}`, 1000, false)
			}
			passes(t, w, of("ada"))
			passes(t, w, of("bob"))
			if x := refusedFor(t, w, of("ada"), "limit_exceeded"); x.Reply.Headers.Get("x-weir-tier") != "user" {
				t.Errorf("by %v", x.Reply.Headers)
			}
			early := long(`{"model":"free","metadata":{"user":"eve"},`+messages(40_000)+`}`, 1000, false)
			if x := w.Open(early); !x.Sent || x.Buffered > 6000 {
				t.Errorf("%d bytes were held: %+v", x.Buffered, x.Reply)
			}
		})
	}
}

// Of a compressed body as much is walked over as is inflated. What is behind that is refused.
func TestCompressedModelBehindTheMessages(t *testing.T) {
	packed := func(body string) filtertest.Request {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(body))
		_ = w.Close()
		r := request(chatPath, "a", b.String())
		r.Headers = append(r.Headers, [2]string{"content-encoding", "gzip"})
		return r
	}
	both(t, 1, holding(), func(t *testing.T, p *filtertest.Process) {
		w, early := p.Worker(0), packed(`{"model":"m1",`+messages(60_000)+`}`)
		near, far := packed(`{`+messages(12_000)+`,"model":"m0"}`), packed(`{`+messages(60_000)+`,"model":"m0"}`)
		if len(near.Body) > 4096 || len(far.Body) > 4096 {
			t.Fatal("they are too long for the test")
		}
		passes(t, w, near)
		refusedFor(t, w, near, "limit_exceeded")
		refusedFor(t, w, far, "unreadable_body")
		passes(t, w, early)
		refusedFor(t, w, early, "limit_exceeded")
		lies := long(`{"model":"free",`+messages(100_000)+`,"model":"m2"}`, 1000, true)
		lies.Headers = append(lies.Headers, [2]string{"content-encoding", "gzip"})
		refusedFor(t, w, lies, "unreadable_body")
	})
}

// What an honest body says beside its model may be much, without any of it being long: it neither refuses the body nor cuts it off.
func TestManyShortMembersOfALongBody(t *testing.T) {
	many := strings.Repeat(`"x":"`+strings.Repeat("y", 1000)+`",`, 80)
	both(t, 1, holding(`"64KiB"`, `"256KiB"`), func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		passes(t, w, long(`{"model":"free",`+many+messages(100_000)+`}`, 1000, true))
		passes(t, w, long(`{`+many+messages(40_000)+`,"model":"m0"}`, 1000, true))
		refusedFor(t, w, long(`{`+many+messages(40_000)+`,"model":"m0"}`, 1000, true), "limit_exceeded")
		refusedFor(t, w, long(`{`+many+messages(40_000)+`,"model":"m1","model":"m2"}`, 1000, true), "unreadable_body")
		if x := refusedFor(t, w, long(`{"model":"free",`+messages(100_000)+`,`+many+`"model":"m1"}`, 1000, true), "unreadable_body"); !x.Sent {
			t.Error("it has not left before")
		}
	})
}

// Where a body passes from which nothing can be told, one of which something is missed is not cut off after it has left either.
func TestUnreadMembersWithOnErrorAllow(t *testing.T) {
	both(t, 1, holding(`"trust"`, `"on_error":"allow","trust"`), func(t *testing.T, p *filtertest.Process) {
		lost := `,"` + strings.Repeat("k", 20_000) + `":1`
		passes(t, p.Worker(0), long(`{"model":"free"`+lost+`,`+messages(100_000)+`}`, 1000, false))
		passes(t, p.Worker(0), long(`{"model":"free",`+messages(100_000)+lost+`}`, 1000, false))
	})
}

// What a stream keeps of its body goes with it: workers keep streams for another use, and an answer may take long.
func TestOutlinesAreDropped(t *testing.T) {
	many := strings.Repeat(`"x":"`+strings.Repeat("y", 1000)+`",`, 60)
	both(t, 1, holding(`"64KiB"`, `"256KiB"`, `"in_flight":"100"`, `"in_flight":"1000"`), func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		for i, body := range []string{`{` + many + messages(10_000), `{"model":"free",` + many + messages(10_000)} {
			x := w.Start(long("", 1, false)) // leaves while it is held, or in the middle of its body
			for _, piece := range pieces([]byte(body), 1000) {
				x.SendBody(piece, false)
			}
			if v := w.VM(); v != nil && x.Sent != (i == 1) {
				t.Errorf("%d: sent %v", i, x.Sent)
			}
			if x.Close(); w.VM() != nil && w.VM().Outlines() != 0 {
				t.Errorf("%d: its outline is kept", i)
			}
		}
		before := w.Memory()
		for range 400 {
			if x := w.Open(long(`{"model":"other",`+many+messages(10_000)+`}`, 8000, false)); !x.Sent {
				t.Fatalf("%+v", x.Reply)
			}
			if p.Clock += 60e9; w.Memory()-before > 16<<20 {
				t.Fatalf("400 answers that are awaited take %d MiB", (w.Memory()-before)>>20)
			}
		}
	})
}

// An attempt of Envoy's that waits for the control plane holds back nothing of the body that is still on its way: it would never go
// on, for what is resumed is the attempt.
func TestAttemptWaitsWhileTheBodyComes(t *testing.T) {
	edits := strings.NewReplacer(`"trust"`, `"body":{"parse":"4KiB","hold":"64KiB"},"trust"`)
	both(t, 1, edits.Replace(centralPolicy), func(t *testing.T, p *filtertest.Process) {
		if err := p.CountAttempts(); err != nil {
			t.Fatal(err)
		}
		newControlPlane(p)
		body := `{"model":"gpt-4o-mini","max_tokens":5,` + messages(20_000) + `}`
		all := pieces([]byte(body), 5000)
		r := withUser("a", "u", "plain", 1000)
		r.Body, r.Chunks = nil, all
		x := p.Worker(0).Start(r)
		x.SendBody(all[0], false)
		p.Sleep(2 * aTick)
		if !x.Sent || !x.Attempt() || !x.Fails(503) {
			t.Fatalf("the first attempt: sent %v, %+v, %v", x.Sent, x.Reply, x.AnswerHeaders())
		}
		first := x.Body
		if x.Body = nil; x.Attempt() { // as of a body that Envoy keeps nothing of
			t.Fatal("the second left before anybody was asked")
		}
		x.Body = first
		for i, piece := range all[1:] {
			x.SendBody(piece, i == len(all)-2)
		}
		if string(x.Body) != body {
			t.Errorf("%d of %d bytes have come to where Envoy holds them for the attempt: %+v", len(x.Body), len(body), x.Reply)
		}
		p.Sleep(2 * aTick)
	})
}
