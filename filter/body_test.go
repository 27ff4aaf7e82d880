// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

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

// A body that cannot be read counts by its length, whatever it is, and passes unchanged.
func TestUnreadableBodies(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		deep := strings.Repeat("[", 100_000)
		for i, row := range []struct {
			body     string
			encoding string
		}{
			{"not json", ""}, {"{", ""}, {"[1,2]", ""}, {`{"messages":` + deep, ""}, {"\x28\xb5\x2f\xfd\x00", ""}, {"\xff\xfe{}", ""},
			{`{"model":{"id":"x"},"messages":"hi","max_tokens":{"a":1},"stream":"true"}`, ""},
			{`{"messages":[1,null,"x",{"content":{"a":[1]}},[[]]],"tools":7,"n":-1,"max_tokens":-5}`, ""},
			{`{"model":"m","max_tokens":1e400,"n":1e300,"messages":[]}`, ""},
			{"\x1f\x8b compressed", "gzip"},
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
	})
}

// Members that come twice do not fool it: the last model, the largest cap.
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
