// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// Headers that the filter reads, one of which has a value of anything.
var fuzzedHeaders = []string{
	"x-weir-reservation", "x-weir-deadline", "x-stainless-timeout", "grpc-timeout", "x-envoy-expected-rq-timeout-ms", "x-priority", "x-request-tree", "baggage",
	"traceparent", "content-encoding", "authorization", "content-length", "x-stainless-retry-count", "upgrade", "x-weir-explain", "x-tenant", "accept-encoding",
}

// Whatever a caller sends, and a provider answers: nothing panics, it is sent or answered once, and in the end nothing is held.
func FuzzRequest(f *testing.F) {
	f.Add("POST", "/openai/v1/chat/completions", uint8(0), "00112233445566778899aabbccddeeff", []byte(`{"model":"big","stream":true,"max_tokens":9,"messages":[]}`), "text/event-stream", []byte("data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"))
	f.Add("GET", "/.weir/budget?provider=openai", uint8(15), "a", []byte(nil), "", []byte(nil))
	f.Add("POST", "/.weir/reserve", uint8(6), "t", []byte(`{"branches":2,"provider":"openai","model":"big","input_tokens":5,"tools":{"search":1}}`), "", []byte(nil))
	f.Add("HEAD", "/search/q", uint8(1), "1h", []byte(nil), "application/json", []byte(`{"error":{}}`))
	f.Add("POST", "/free/v1/responses", uint8(9), "gzip", []byte("\x1f\x8b"), "application/json", []byte(`{}`))
	f.Fuzz(func(t *testing.T, method, path string, header uint8, value string, body []byte, kind string, answer []byte) {
		if method == "" {
			return
		}
		if len(body) == 0 {
			body = nil // no body is said with the headers
		}
		p, err := filtertest.NewProcess(nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Configure([]byte("{" + enforces + machineHead + machineClasses)); err != nil {
			t.Fatal(err)
		}
		if err := p.CountAttempts(); err != nil {
			t.Fatal(err)
		}
		name := fuzzedHeaders[int(header)%len(fuzzedHeaders)]
		x := p.Worker(0).Open(filtertest.Request{Method: method, Path: path, Headers: [][2]string{{"x-user", "u"}, {name, value}}, Body: body})
		if x.Sent == (x.Reply != nil) || x.Sent && strings.HasPrefix(path, "/.weir/") {
			t.Fatalf("sent %v, answered %+v", x.Sent, x.Reply)
		}
		if x.Sent && x.Attempt() && x.Fails(503) && x.Attempt() {
			x.Respond(200, false, [2]string{"content-type", kind})
			x.Chunk(answer, false)
			x.Chunk(nil, true)
		}
		x.Close()
		p.Sleep(3 * time.Second)
		if n, waiting, places, tickets := p.Worker(0).VM().Held(); n+waiting+places+tickets != 0 || p.Metric("weir_panics_total") > 0 {
			t.Fatalf("%d in flight, %d that wait, %d places, %d tickets: %v", n, waiting, places, tickets, p.Logs)
		}
	})
}
