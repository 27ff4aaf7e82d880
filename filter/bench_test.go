// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter"
)

// benchPolicy has limits on all tiers that a usual policy has, as that of weir bench filter.
const benchPolicy = `{"apiVersion":"weir/v1","trust":["all"],
	"providers":{"openai":{"upstream":"http://openai.test","prefix":"/","models":{"*":{"rpm":"1000000000","tpm":"1000000000000"}}}},
	"limits":{"tenant":{"default":{"rpm":"1000000000","tpm":"1000000000000"}},"user":{"default":{"tpm":"1000000000000"}}}}`

// A still host answers each call from memory that it has, so that what is allocated is the filter's.
type stillHost struct {
	filter.Host // none: what the filter does not call for such a request

	now             int64
	shared          map[string][]byte
	cas             uint32
	request, answer [][2]string
	body, chunk     []byte
	ticket          string
}

func newStillHost(kb int) *stillHost {
	return &stillHost{
		now: int64(time.Hour), shared: map[string][]byte{},
		request: [][2]string{
			{":authority", "x"}, {":path", "/v1/chat/completions"}, {":method", "POST"}, {":scheme", "http"},
			{"content-type", "application/json"}, {"x-tenant", "acme"}, {"x-user", "ada"}, {"user-agent", "bench"},
			{"accept-encoding", "gzip"}, {"x-envoy-external-address", "127.0.0.1"}, {"x-request-id", "e4ebdbf3-6a0c-4f04-9c0c-0a7be4b5a2b7"},
		},
		answer: [][2]string{{":status", "200"}, {"content-type", "application/json"}, {"x-envoy-upstream-service-time", "3"}},
		body: []byte(`{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"` +
			strings.Repeat("what is the weather in Lisbon? ", kb<<10/31) + `"}]}`),
		chunk: []byte(`{"id":"x","model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Sunny."},"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":480,"completion_tokens":100,"total_tokens":580}}`),
	}
}

func (h *stillHost) Get(key string) ([]byte, uint32, bool) {
	v, ok := h.shared[key]
	return v, h.cas, ok
}

func (h *stillHost) Set(key string, value []byte, cas uint32) bool {
	if v := h.shared[key]; len(v) == len(value) {
		copy(v, value)
	} else {
		h.shared[key] = append([]byte(nil), value...)
	}
	h.cas++
	return true
}

func (h *stillHost) Now() int64                                { h.now += 1000; return h.now }
func (h *stillHost) Wall() int64                               { return h.now + 1e18 }
func (h *stillHost) RequestHeaders(to [][2]string) [][2]string { return append(to[:0], h.request...) }
func (h *stillHost) SetRequestHeader(_, _ string)              {}
func (h *stillHost) RemoveRequestHeader(string)                {}
func (h *stillHost) RequestBody(from, size int) []byte         { return h.body[from : from+size] }
func (h *stillHost) ResponseHeaders() [][2]string              { return h.answer }
func (h *stillHost) ResponseHeader(string) string              { return h.answer[0][1] }
func (h *stillHost) SetResponseHeader(_, _ string)             {}
func (h *stillHost) RemoveResponseHeader(string)               {}
func (h *stillHost) ResponseBody(size int) []byte              { return h.chunk[:size] }
func (h *stillHost) Property(string) string                    { return h.ticket }
func (h *stillHost) SetProperty(_, value string)               { h.ticket = value }
func (h *stillHost) Add(*filter.Metric, int64)                 {}
func (h *stillHost) Log(filter.Level, string)                  {}

// usual gives the calls of Envoy's for one request that is admitted.
func usual(tb testing.TB, kb int) (*stillHost, func()) {
	h := newStillHost(kb)
	v := filter.NewVM(h)
	p, err := v.Configure(1, []byte(benchPolicy))
	if err != nil {
		tb.Fatal(err)
	}
	attempts, err := v.Configure(2, []byte(filter.AttemptConfig))
	if err != nil {
		tb.Fatal(err)
	}
	n := 0
	return h, func() {
		h.ticket = ""
		s := p.NewStream(1)
		s.RequestHeaders(false)
		s.RequestBody(len(h.body), false)
		if s.RequestBody(len(h.body), true) != filter.Continue {
			tb.Fatal("the request was not admitted")
		}
		a := attempts.NewAttempt(2)
		a.RequestHeaders()
		a.ResponseHeaders()
		s.ResponseHeaders(false)
		s.ResponseBody(len(h.chunk), false)
		s.ResponseBody(0, true)
		s.Done()
		if n++; n%50 == 0 {
			v.Tick(p)
		}
	}
}

// BenchmarkRequest is also what the profile is made of by which the filter is compiled: see the Makefile.
func BenchmarkRequest(b *testing.B) {
	for _, kb := range []int{2, 32} {
		b.Run(fmt.Sprint(kb, "KB"), func(b *testing.B) { benchmarkRequest(b, kb, false) })
	}
	b.Run("stream", func(b *testing.B) { benchmarkRequest(b, 2, true) })
}

func benchmarkRequest(b *testing.B, kb int, stream bool) {
	h, once := usual(b, kb)
	if stream {
		h.stream()
	}
	for range 3000 { // what is learned at first has been
		once()
	}
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
}

// stream makes the answer a stream of events.
func (h *stillHost) stream() {
	h.body = append(h.body[:len(h.body)-1:len(h.body)-1], `,"stream":true,"stream_options":{"include_usage":true}}`...)
	h.answer[1][1] = "text/event-stream"
	event := `data: {"id":"x","object":"chat.completion.chunk","model":"gpt-4o","choices":[{"index":0,"delta":{"content":" sunny"}}]}` + "\n\n"
	h.chunk = []byte(strings.Repeat(event, 20) +
		`data: {"id":"x","choices":[],"usage":{"prompt_tokens":480,"completion_tokens":20,"total_tokens":500}}` + "\n\ndata: [DONE]\n\n")
}

// TestAllocations: what a request allocates is brought to a garbage collector that stops its worker, and takes the place of others
// in the processor's caches.
func TestAllocations(t *testing.T) {
	_, once := usual(t, 2)
	for range 3000 {
		once()
	}
	if n := testing.AllocsPerRun(1000, once); n > 0 {
		t.Errorf("%v allocations in a request", n)
	}
}
