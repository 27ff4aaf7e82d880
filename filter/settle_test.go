// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

const input = 8 // tokens of a chat with "hi"

// Each row of the settlement table: what a call with 8 tokens of input and 1000 declared counts in the end.
func TestSettlementTable(t *testing.T) {
	sse := func(x *filtertest.Exchange, chunks ...string) {
		x.Respond(200, false, [2]string{"content-type", "text/event-stream"})
		for _, c := range chunks {
			x.Chunk([]byte(c), false)
		}
	}
	const hello = `data: {"choices":[{"delta":{"content":"hello world"}}]}` + "\n\n"
	rows := []struct {
		name   string
		end    func(x *filtertest.Exchange)
		tokens int64
		metric string
	}{
		{"429", func(x *filtertest.Exchange) { x.Answer(429, `{}`) }, 0, "weir_endings_total.ending.rejected"},
		{"400", func(x *filtertest.Exchange) { x.Answer(400, `{}`) }, 0, "weir_endings_total.ending.rejected"},
		{"503", func(x *filtertest.Exchange) { x.Answer(503, `{}`) }, 0, "weir_endings_total.ending.broken"},
		{"reset before an answer", func(x *filtertest.Exchange) { x.Respond(503, true); x.Close() }, 0, "weir_endings_total.ending.broken"},
		{"caller gone before an answer", func(x *filtertest.Exchange) { x.Close() }, input, "weir_endings_total.ending.left"},
		{"usage", func(x *filtertest.Exchange) {
			x.Answer(200, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":21,"total_tokens":30}}`)
		}, 30, "weir_charges_total.source.usage"},
		{"more than reserved", func(x *filtertest.Exchange) {
			x.Answer(200, `{"usage":{"prompt_tokens":9,"completion_tokens":4991}}`)
		}, 5000, "weir_charges_total.source.usage"},
		{"usage in a stream", func(x *filtertest.Exchange) {
			sse(x, hello, `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}`+"\n\n", "data: [DONE]\n\n")
			x.Chunk(nil, true)
			x.Close()
		}, 11, "weir_charges_total.source.usage"},
		{"stream without usage", func(x *filtertest.Exchange) {
			sse(x, hello, hello)
			x.Chunk(nil, true)
			x.Close()
		}, input + 4, "weir_charges_total.source.count"},
		{"caller gone in a stream", func(x *filtertest.Exchange) { sse(x, hello); x.Close() }, input + 2, "weir_charges_total.source.count"},
		{"caller gone after usage", func(x *filtertest.Exchange) {
			sse(x, hello, `data: {"usage":{"prompt_tokens":9,"completion_tokens":40}}`+"\n\n")
			x.Close()
		}, 49, "weir_charges_total.source.usage"},
		{"usage of nothing", func(x *filtertest.Exchange) {
			sse(x, hello, `data: {"usage":{"prompt_tokens":0,"completion_tokens":0}}`+"\n\n")
			x.Chunk(nil, true)
			x.Close()
		}, input + 2, "weir_charges_total.source.estimate"},
		{"negative usage", func(x *filtertest.Exchange) {
			sse(x, hello, `data: {"usage":{"prompt_tokens":-5,"completion_tokens":-7}}`+"\n\n")
			x.Chunk(nil, true)
			x.Close()
		}, input + 2, "weir_charges_total.source.count"},
		{"absurd usage", func(x *filtertest.Exchange) {
			sse(x, hello, `data: {"usage":{"prompt_tokens":9,"completion_tokens":99999999}}`+"\n\n")
			x.Chunk(nil, true)
			x.Close()
		}, input + 2, "weir_charges_total.source.estimate"},
		{"an error in place of a stream", func(x *filtertest.Exchange) {
			sse(x, `data: {"error":{"code":"rate_limit_exceeded","message":"slow"}}`+"\n\n")
			x.Chunk(nil, true)
			x.Close()
		}, 0, "weir_endings_total.ending.rejected"},
		{"an error in a 200", func(x *filtertest.Exchange) { x.Answer(200, `{"error":{"code":"x"}}`) }, 0, "weir_endings_total.ending.rejected"},
		{"JSON without usage", func(x *filtertest.Exchange) {
			x.Answer(200, `{"id":"abcd","text":"`+strings.Repeat("a", 392)+`"}`)
		}, input + 100, "weir_charges_total.source.count"},
		{"trailers", func(x *filtertest.Exchange) {
			sse(x, `data: {"usage":{"prompt_tokens":9,"completion_tokens":2}}`+"\n\n")
			x.Trailers()
			x.Close()
		}, 11, "weir_charges_total.source.usage"},
	}
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		for i, row := range rows {
			tenant := fmt.Sprint("tenant", i)
			before := p.Metric(row.metric)
			x := p.Worker(0).Open(chat(tenant, "hi", 1000))
			if got := used(t, p, tenant); !x.Sent || got != input+1000 {
				t.Fatalf("%s: sent %v, %d reserved, want %d", row.name, x.Sent, got, input+1000)
			}
			row.end(x)
			x.Close()
			if p.Metric(row.metric) != before+1 {
				t.Errorf("%s: %s did not count: %v", row.name, row.metric, p.Metrics)
			}
			if got := used(t, p, tenant); got != row.tokens {
				t.Errorf("%s: %d tokens count, want %d", row.name, got, row.tokens)
			}
		}
	})
}

// settle.uncertain: keep charges the input where nobody knows.
func TestSettleUncertainKeep(t *testing.T) {
	policy := strings.Replace(onePolicy, `"trust"`, `"settle":{"uncertain":"keep"},"trust"`, 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		x := p.Worker(0).Open(chat("a", "hi", 1000))
		x.Answer(502, ``)
		if got := used(t, p, "a"); got != input {
			t.Errorf("%d tokens count, want %d", got, input)
		}
	})
}

// However a stream is cut into chunks, its usage is the same.
func TestStreamInAnyChunks(t *testing.T) {
	streams := map[string]string{
		"chat": "data: {\"choices\":[{\"delta\":{\"content\":\"h\u00e9llo\"}}],\"usage\":null}\r\n\r\n: comment\r\ndata:{\"choices\":[],\r\ndata:\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":21}}\r\n\r\ndata: [DONE]\r\n\r\n",
		"cr":   "data: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":21}}\r\rdata: [DONE]\r\r",
		"last": "id: 4\nretry: 5\nevent: x\ndata: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":21}}",
	}
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		for name, s := range streams {
			for cut := 1; cut < len(s); cut += 1 + len(s)/40 {
				tenant := fmt.Sprint(name, cut)
				x := p.Worker(0).Open(chat(tenant, "hi", 1000))
				x.Respond(200, false, [2]string{"content-type", "Text/Event-Stream; charset=utf-8"})
				for rest := s; rest != ""; {
					n := min(cut, len(rest))
					if x.Chunk([]byte(rest[:n]), false) {
						t.Fatal("a chunk was held back")
					}
					rest = rest[n:]
				}
				x.Chunk(nil, true)
				x.Close()
				if got := used(t, p, tenant); got != 30 {
					t.Fatalf("%s in pieces of %d: %d tokens count, want 30", name, cut, got)
				}
			}
		}
	})
}

// Anthropic's usage comes in two events, with running totals and the cache beside the input.
func TestAnthropicStream(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		x := p.Worker(0).Open(request("/anthropic/v1/messages", "a", `{"model":"claude-x","max_tokens":1000,"stream":true,"messages":[{"role":"user","content":"hi"}]}`))
		x.Respond(200, false, [2]string{"content-type", "text/event-stream"})
		for _, e := range []string{
			`{"type":"message_start","message":{"usage":{"input_tokens":20,"cache_creation_input_tokens":5,"cache_read_input_tokens":5000,"output_tokens":1}}}`,
			`{"type":"ping"}`,
			`{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hello"}}`,
			`{"type":"message_delta","usage":{"output_tokens":15}}`,
			`{"type":"message_stop"}`,
		} {
			x.Chunk([]byte("event: x\ndata: "+e+"\n\n"), false)
		}
		x.Chunk(nil, true)
		x.Close()
		if got := used(t, p, "a"); got != 40 {
			t.Errorf("%d tokens count, want 20+5+15", got)
		}
	})
}

// Responses say their usage in the terminal event, whichever it is.
func TestResponsesStream(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		for _, kind := range []string{"completed", "incomplete", "failed"} {
			x := p.Worker(0).Open(request("/openai/v1/responses", kind, `{"model":"gpt-5","max_output_tokens":1000,"stream":true,"input":"hi"}`))
			x.Respond(200, false, [2]string{"content-type", "text/event-stream"})
			x.Chunk([]byte("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"word\"}\n\n"), false)
			x.Chunk([]byte("data: {\"type\":\"response."+kind+"\",\"response\":{\"usage\":{\"input_tokens\":20,\"output_tokens\":64}}}\n\n"), true)
			x.Close()
			if got := used(t, p, kind); got != 84 {
				t.Errorf("%s: %d tokens count, want 84", kind, got)
			}
		}
	})
}

// Of a request that names input which is not in it, usage far above the estimate is believed; of work that goes on in the
// background, all that was reserved counts.
func TestUsageBeyondTheBody(t *testing.T) {
	policy := strings.Replace(onePolicy, "100000", "10000000", 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for name, row := range map[string]struct {
			request, answer string
			want            string // what remains of ten million; the first calls of a model are counted, to learn from them
		}{
			"earlier answers":       {`"previous_response_id":"resp_1","max_output_tokens":16,"input":"hi"`, `{"status":"completed","usage":{"input_tokens":90000,"output_tokens":16}}`, "9909984"},
			"an image":              {`"max_output_tokens":16,"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://x"}]}]`, `{"usage":{"input_tokens":900000,"output_tokens":0}}`, "9100000"},
			"no more than is there": {`"previous_response_id":null,"max_output_tokens":16,"input":"hi"`, `{"usage":{"input_tokens":90000,"output_tokens":16}}`, "9999992"},
			"background":            {`"background":true,"max_output_tokens":50000,"input":"hi"`, `{"status":"queued","background":true,"error":null,"usage":null}`, "9949992"},
		} {
			p.Worker(0).Open(request("/openai/v1/responses", name, `{"model":"gpt-5",`+row.request+`}`)).Answer(200, row.answer)
			p.Sleep(20 * time.Millisecond)
			x := p.Worker(0).Open(chat(name, "hi", 10_000_000-8))
			if x.Reply == nil || !strings.Contains(x.Reply.Headers.Get("ratelimit"), ";r="+row.want+";") {
				t.Errorf("%s: %+v", name, x.Reply)
			}
		}
	})
}

// Usage is read whatever the answer calls itself.
func TestUsageInAnyContentType(t *testing.T) {
	const json, sse = `{"usage":{"prompt_tokens":5,"completion_tokens":7000}}`, "\ufeffdata: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7000}}\n\n"
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		for _, row := range [][2]string{
			{"application/json; charset=utf-8", json}, {"application/vnd.api+json", json}, {"text/json", json}, {"text/plain", " \n" + json}, {"", json},
			{"application/x-ndjson", json}, {"text/event-stream", sse}, {"", sse[3:]}, {"Text/Event-Stream", sse},
		} {
			tenant := fmt.Sprintf("%x", row)
			x := p.Worker(0).Open(chat(tenant, "hi", 10000))
			x.Respond(200, false, [2]string{"content-type", row[0]})
			x.Chunk([]byte(row[1][:1]), false)
			x.Chunk([]byte(row[1][1:]), true)
			x.Close()
			if got := used(t, p, tenant); got != 7005 {
				t.Errorf("%q: %d tokens count, want 7005", row, got)
			}
		}
	})
}
