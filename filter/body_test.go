// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// pieces cuts a body.
func pieces(b []byte, n int) (out [][]byte) {
	for len(b) > n {
		out = append(out, b[:n])
		b = b[n:]
	}
	return append(out, b)
}

// However a body comes, in pieces, with trailers or without a length, it is decided once it is complete, and leaves as it
// came.
func TestBodiesInPieces(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		for _, trailers := range []bool{false, true} {
			for _, n := range []int{1, 7, 1000} {
				tenant := fmt.Sprint(trailers, n)
				r := chat(tenant, "hi", 1000)
				r.Chunks, r.Trailers = pieces(r.Body, n), trailers
				x := p.Worker(0).Open(r)
				if !x.Sent || !bytes.Equal(x.Body, r.Body) {
					t.Fatalf("%s: sent %v, %q", tenant, x.Sent, x.Body)
				}
				if got := used(t, p, tenant); got != input+1000 {
					t.Errorf("%s: %d tokens reserved", tenant, got)
				}
			}
		}
		r := chat("empty", "hi", 1)
		r.Body = nil
		if x := p.Worker(0).Open(r); !x.Sent {
			t.Errorf("a request without a body: %+v", x.Reply)
		}
	})
}

// Nothing leaves before the decision, and a caller that goes before it has used nothing.
func TestCallerLeavesWhileHeld(t *testing.T) {
	policy := strings.Replace(onePolicy, `"tpm":"100000"`, `"tpm":"100000","in_flight":"1"`, 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		r := chat("a", "hi", 1000)
		r.Chunks = [][]byte{}
		x := p.Worker(0).Start(r)
		x.SendBody([]byte(`{"model":`), false)
		if x.Sent || x.Reply != nil {
			t.Fatal("it left before its body was complete")
		}
		x.Close()
		if got := used(t, p, "a"); got != 0 {
			t.Errorf("%d tokens used", got)
		}
	})
}

// A body beyond the cap is decided by its length and streams through; no more than the cap is ever held.
func TestBodyBeyondTheCap(t *testing.T) {
	const size = 3 << 20
	policy := strings.ReplaceAll(onePolicy, "100000", "10000000")
	for _, declared := range []bool{true, false} {
		both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
			r := chat("a", strings.Repeat("a", size), 10)
			r.Chunks = pieces(r.Body, 64<<10)
			if declared {
				r.Headers = append(r.Headers, [2]string{"content-length", fmt.Sprint(len(r.Body))})
			}
			x := p.Worker(0).Open(r)
			if !x.Sent || !bytes.Equal(x.Body, r.Body) {
				t.Fatalf("sent %v, %d of %d bytes", x.Sent, len(x.Body), len(r.Body))
			}
			if x.Buffered > 1<<20+64<<10 {
				t.Errorf("%d bytes were held", x.Buffered)
			}
			x.Close()
			got := p.Metric("weir_endings_total.ending.left")
			if got != 1 {
				t.Errorf("%v", p.Metrics)
			}
		})
	}
}

// A body that is compressed or odd JSON passes unchanged; one that is no JSON object does not pass, for it might be one to
// the provider.
func TestUnreadableBodies(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		deep := strings.Repeat("[", 100_000)
		for i, row := range []struct {
			body     string
			encoding string
		}{
			{"{", ""}, {`{"messages":` + deep, ""}, {" \n{}", ""},
			{`{"model":{"id":"x"},"messages":"hi","max_tokens":{"a":1},"stream":"true"}`, ""},
			{`{"messages":[1,null,"x",{"content":{"a":[1]}},[[]]],"tools":7,"n":-1,"max_tokens":-5}`, ""},
			{`{"model":"m","max_tokens":1e400,"n":1e300,"messages":[]}`, ""},
			{"\x1f\x9d compressed", "compress"},
		} {
			r := request("/openai/v1/chat/completions", fmt.Sprint(i), row.body)
			if row.encoding != "" {
				r.Headers = append(r.Headers, [2]string{"content-encoding", row.encoding})
			}
			x := p.Worker(0).Open(r)
			if x.Reply != nil && x.Reply.Status != 413 {
				t.Errorf("%.40q: %+v", row.body, x.Reply)
			}
			if x.Reply == nil && string(x.Body) != row.body {
				t.Errorf("%.40q became %.40q", row.body, x.Body)
			}
		}
		for _, body := range []string{"not json", "[1,2]", "\x28\xb5\x2f\xfd\x00", "\xff\xfe{\x00}\x00", "model=gpt-4o", "\x1f\x8b\x08"} {
			r := request("/openai/v1/chat/completions", "a", body)
			if body[0] == 0x1f {
				r.Headers = append(r.Headers, [2]string{"content-encoding", "gzip"})
			}
			x := p.Worker(0).Open(r)
			if x.Reply == nil || x.Reply.Status != 400 || x.Reply.Headers.Get("x-weir-reason") != "unreadable_body" {
				t.Errorf("%q: %+v", body, x.Reply)
			}
		}
	})
	for _, lenient := range []string{`"on_error":"allow",`, `"mode":"shadow",`} {
		both(t, 1, strings.Replace(onePolicy, `{`, `{`+lenient, 1), func(t *testing.T, p *filtertest.Process) {
			if x := p.Worker(0).Open(request("/openai/v1/chat/completions", "a", "not json")); !x.Sent {
				t.Errorf("%s: %+v", lenient, x.Reply)
			}
		})
	}
}

// A body that a provider would take for the same is the same: no way of writing it leads to another model's limits.
func TestModelInAnyForm(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","trust":["all"],"providers":{"openai":{"upstream":"http://openai.test","models":
		{"gpt-4o*":{"rpm":"2","burst":"100%"},"*":{"rpm":"1000","burst":"100%"}}}}}`
	const body = `{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`
	js := [2]string{"content-type", "application/json"}
	pad := strings.Repeat(" ", 1<<20)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for name, r := range map[string]filtertest.Request{
			"plain": {Headers: [][2]string{js}, Body: []byte(body)}, "byte order mark": {Headers: [][2]string{js}, Body: []byte("\ufeff" + body)},
			"form":     {Headers: [][2]string{{"content-type", "application/x-www-form-urlencoded"}}, Body: []byte(body)},
			"identity": {Headers: [][2]string{js, {"content-encoding", "Identity"}}, Body: []byte(body)},
			"utf-8":    {Headers: [][2]string{js, {"content-encoding", "utf-8"}}, Body: []byte(body)},
			"long":     {Headers: [][2]string{js}, Body: []byte(body + pad)}, "long, in pieces": {Headers: [][2]string{js}, Chunks: [][]byte{[]byte(body + pad), []byte(" ")}},
			"JSON": {Headers: [][2]string{{"content-type", "application/JSON"}}, Body: []byte(body)}, "escapes": {Headers: [][2]string{js}, Body: []byte(strings.Replace(body, "model", `\u006dodel`, 1))},
			"twice": {Headers: [][2]string{js}, Body: []byte(`{"model":"gpt-4o-mini",` + body[1:])},
		} {
			r.Path = "/openai/v1/chat/completions"
			n := 0
			for range 20 {
				if p.Worker(0).Open(r).Sent {
					n++
				}
			}
			if n != 2 {
				t.Errorf("%s: %d sent, rpm is 2", name, n)
			}
			p.Sleep(2 * time.Minute)
		}
	})
}

// Content that is nested in content a thousand times over is not read a thousand times.
func TestHostileNesting(t *testing.T) {
	open, end := `[{"content":`, `,"type":"tool_result"}]`
	body := func(n int) string {
		return `{"model":"claude-x","max_tokens":10,"messages":[{"role":"user","content":` + strings.Repeat(open, n) + `"x"` + strings.Repeat(end, n) + `}]}`
	}
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		took := func(n int) time.Duration {
			least := time.Hour
			for range 3 {
				began := time.Now()
				p.Worker(0).Open(request("/anthropic/v1/messages", "a", body(n))).Close()
				least = min(least, time.Since(began))
			}
			return least
		}
		small, large := took(1000), took(16000)
		if large > 64*small+100*time.Millisecond {
			t.Errorf("16 times the body took %v in place of %v", large, small)
		}
		x := p.Worker(0).Open(chat("a", "hi", 10))
		x.Respond(200, false, [2]string{"content-type", "text/event-stream"})
		began := time.Now()
		x.Chunk([]byte(`data: {"choices":[{"delta":`+strings.Repeat(`{"a":`, 60_000)+`"x"`+strings.Repeat("}", 60_000)+"}]}\n\n"), false)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("a nested event took %v", took)
		}
	})
}

// Members that come twice do not fool it: the model with a limit, the largest cap.
func TestDuplicateMembers(t *testing.T) {
	policy := strings.Replace(onePolicy, `"openai":{`, `"openai":{"models":{"dear":{"tpm":"10000","burst":"100%"}},`, 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		body := `{"model":"cheap","max_tokens":1,"messages":[{"role":"user","content":"hi"}],"model":"dear","max_tokens":9900}`
		if x := p.Worker(0).Open(request("/openai/v1/chat/completions", "a", body)); !x.Sent {
			t.Fatalf("%+v", x.Reply)
		}
		x := p.Worker(0).Open(request("/openai/v1/chat/completions", "b", strings.Replace(body, "9900", "1000", 1)))
		if x.Reply == nil || x.Reply.Headers.Get("x-weir-tier") != "provider" {
			t.Errorf("%+v", x.Reply)
		}
	})
}

// While hardly anything of a limit is used, a body of text is not counted: an upper bound is reserved, and settled by what
// the answer says, or by the body's length if it does not.
func TestAmpleLimitsAreNotCounted(t *testing.T) {
	body := `{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"` + strings.Repeat("hello world, ", 100) + `"}]}`
	bound, byLength := int64(len(body)*3/2+7+100), int64(len(body)+3)/4
	const counted = 308
	send := func(p *filtertest.Process, tenant string) *filtertest.Exchange {
		return p.Worker(0).Open(request("/openai/v1/chat/completions", tenant, body))
	}
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		x := send(p, "a")
		if got := used(t, p, "a"); got != bound {
			t.Errorf("%d reserved, want the bound of %d", got, bound)
		}
		x.Answer(200, `{"usage":{"prompt_tokens":300,"completion_tokens":33}}`)
		if got := used(t, p, "a"); got != 333 {
			t.Errorf("%d count, want what was said", got)
		}
		unsaid := func(tenant string, want int64) {
			send(p, tenant).Answer(200, `{"id":"`+strings.Repeat("a", 396)+`"}`)
			if got := used(t, p, tenant); got < want+90 || got > want+110 {
				t.Errorf("%d count, want about %d and 100 seen", got, want)
			}
		}
		unsaid("b", counted) // a tenant's first calls of a model are counted all the same, to learn from their answers
		for range 100 {
			send(p, "d").Answer(200, `{"usage":{"prompt_tokens":308,"completion_tokens":1}}`)
		}
		p.Sleep(2 * time.Minute)
		unsaid("d", byLength)
		p.Worker(0).Open(chat("c", "hi", 15_000))
		send(p, "c")
		if got := used(t, p, "c"); got != 15_000+input+counted+100 {
			t.Errorf("%d reserved, want %d: near a limit it is counted", got, 15_000+input+counted+100)
		}
	})
}
