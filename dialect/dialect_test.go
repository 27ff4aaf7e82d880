// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/policy/tokens"
	"pgregory.net/rapid"
)

func exactly(string) tokens.Family { return tokens.O200k }

func read(api API, body string) Request {
	var r Reader
	r.Open(api, []byte(body), exactly)
	return r.Count()
}

// What a request costs, by hand from the published rules and the vocabulary.
func TestRead(t *testing.T) {
	for _, row := range []struct {
		api           API
		body          string
		input, output int64
	}{
		{Chat, `{"messages":[{"role":"user","content":"hello world"}],"max_tokens":7}`, 3 + 4 + 2, 7},
		{Chat, `{"messages":[{"role":"user","content":"hello world","name":"bob"}],"max_tokens":7,"max_completion_tokens":9,"n":3}`, 3 + 4 + 2 + 2, 27},
		{Chat, `{"messages":[{"role":"user","content":[{"type":"text","text":"hello"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 400_000) + `"}}]}]}`, 3 + 4 + 1 + perImage, -1},
		{Chat, `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"hello"}}]},{"role":"user"}]}`, 3 + 4 + 3 + 1 + 1 + 4, -1},
		{Chat, `{"messages":[],"max_tokens":null,"n":null}`, 3, -1},
		{Chat, `{"messages":[],"max_tokens":0}`, 3, -1},
		{Chat, `{"messages":[],"max_tokens":1000.0}`, 3, 1000},
		{Chat, `{"messages":[],"max_tokens":99999999999999999999,"n":10}`, 3, maxDeclared},
		{Chat, `{"metadata":{"max_tokens":1},"max_tokens":300,"messages":[{"role":"user","content":"{\"max_tokens\":9}"}]}`, 3 + 4 + 6, 300},
		{Responses, `{"instructions":"hello","input":"world","max_output_tokens":64}`, 3 + 1 + 4 + 1, 64},
		{Responses, `{"input":[{"role":"user","content":[{"type":"input_text","text":"hello"}]},{"type":"function_call_output","output":"world"}]}`, 3 + 4 + 1 + 4 + 1, -1},
		{Completions, `{"prompt":["hello","world"],"max_tokens":5,"best_of":3}`, 2, 5 * 3 * 2},
		{Completions, `{"prompt":"hello"}`, 1, 16},
		{Embeddings, `{"input":[[20,344,1243],[321,111,233,9]]}`, 7, 0},
		{Embeddings, `{"input":[20,344,1243]}`, 3, 0},
		{Embeddings, `{"input":["hello","world"]}`, 2, 0},
		{Messages, `{"system":[{"type":"text","text":"hello"}],"max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"world"}]}]}]}`, 3 + 1 + 4 + 1, 9},
		{Messages, `{"system":"hello","messages":[{"role":"user","content":"world"}]}`, 3 + 1 + 4 + 1, -1},
	} {
		q := read(row.api, row.body)
		if q.Input != row.input || q.Output != row.output || q.How != Exact {
			t.Errorf("%.80s: input %d, output %d, %v; want %d, %d", row.body, q.Input, q.Output, q.How, row.input, row.output)
		}
	}
}

func TestReadTheRest(t *testing.T) {
	q := read(Chat, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`)
	if q.Model != "m" || !q.Stream || !q.IncludeUsage {
		t.Errorf("%+v", q)
	}
	if q := read(Chat, `{"model":"`+strings.Repeat("m", 500)+`"}`); len(q.Model) != maxModel {
		t.Errorf("a model name of %d bytes", len(q.Model))
	}
	if q := read(Chat, `no json at all`); q.How != Length || q.Input != 4 || q.Output != -1 {
		t.Errorf("%+v", q)
	}
	if q := read(Chat, `{"model":"m","messages":[{"content":"\ud83d"}]}`); q.Input < 5 || q.Input > 20 {
		t.Errorf("%+v", q)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"\ud83dx"},{"type":"tool_result","content":[[{}]]}]}],"tools":[1],"n":2}`))
	f.Add([]byte(`{"input":[[1,2],[3],"x",{}],"prompt":[1,[2],"3"],"system":[{}],"max_tokens":1e99}`))
	f.Add([]byte(`{"messages":[[[[[[[[[[[[`))
	f.Add([]byte(`{"tools":[{}],"messages":[]}`))
	f.Add([]byte(`{"contents":[{"parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png"}}]},{}],"system_instruction":{"parts":[{"text":"b"}]}}`))
	f.Add([]byte(`{"messages":[{"content":[{"text":"a"},{"image":{}}]},1],"system":[{"text":"x"}],"message":"m","chat_history":[1,1,1]}`))
	var r Reader
	f.Fuzz(func(t *testing.T, body []byte) {
		for i := range 2 * int(numAPIs-Chat) {
			api, family := Chat+API(i/2), exactly
			if i%2 == 1 {
				family = func(string) tokens.Family { return tokens.Claude47 }
			}
			bound, _ := r.Open(api, body, family)
			q := r.Count()
			if bound.Input < q.Input || bound.Output != q.Output {
				t.Fatalf("%v: bound %+v, counted %+v", api, bound, q)
			}
			if q.Input < 0 || q.Output < -1 || q.Output > maxDeclared {
				t.Fatalf("%v: %+v", api, q)
			}
		}
	})
}

// answerIn feeds an answer in pieces of the sizes that next gives.
func answerIn(api API, contentType string, body []byte, next func(left int) int) Answer {
	var r Reader
	var a Answer
	r.Start(&a, api, tokens.O200k, contentType)
	for len(body) > 0 {
		n := next(len(body))
		a.Feed(body[:n])
		body = body[n:]
	}
	a.End()
	return a
}

func sameAnswer(a, b *Answer) bool {
	return a.Usage() == b.Usage() && a.Output() == b.Output() && a.Failed() == b.Failed()
}

// A JSON answer's usage is found wherever it stands, in any pieces, as encoding/json finds it.
func TestUsageInJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := map[string]any{}
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			doc[rapid.SampledFrom([]string{"id", "choices", "a\"b", "Usage", "usage2", "data", "x\\"}).Draw(t, "key")] = drawJSON(t, 3)
		}
		usage := map[string]any{"prompt_tokens": rapid.Int32Range(0, 1e6).Draw(t, "in"), "completion_tokens": rapid.Int32Range(0, 1e6).Draw(t, "out"), "details": drawJSON(t, 2)}
		if rapid.Bool().Draw(t, "usage") {
			doc["usage"] = usage
		}
		indent := rapid.SampledFrom([]string{"", " "}).Draw(t, "indent")
		body, err := json.MarshalIndent(doc, "", indent)
		if err != nil {
			t.Fatal(err)
		}
		a := answerIn(Chat, "application/json", body, func(left int) int { return rapid.IntRange(1, left).Draw(t, "piece") })
		want := NoUsage()
		if doc["usage"] != nil {
			want.Input, want.Output = int64(usage["prompt_tokens"].(int32)), int64(usage["completion_tokens"].(int32))
		}
		if a.Usage() != want {
			t.Fatalf("%s: %+v, want %+v", body, a.Usage(), want)
		}
	})
}

// What is wanted within a member is found in any pieces, as encoding/json finds it: the last of each.
func TestScanWithinMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var body strings.Builder
		want := NoUsage()
		for i := range rapid.IntRange(1, 4).Draw(t, "members") {
			key := rapid.SampledFrom([]string{"response", "message", "usage", "x\"", "resp"}).Draw(t, "key")
			inner := map[string]any{}
			for range rapid.IntRange(0, 3).Draw(t, "inner") {
				inner[rapid.SampledFrom([]string{"id", "output", "usage2", "response"}).Draw(t, "key")] = drawJSON(t, 2)
			}
			n := int64(rapid.IntRange(0, 1000).Draw(t, "tokens"))
			if rapid.Bool().Draw(t, "usage") {
				inner["usage"] = map[string]any{"input_tokens": n}
				if key == "response" {
					want.Input = n
				}
			}
			if key == "usage" && rapid.Bool().Draw(t, "itself") {
				inner["input_tokens"] = n
				want.Input = n
			}
			k, _ := json.Marshal(key)
			v, err := json.MarshalIndent(inner, "", rapid.SampledFrom([]string{"", " "}).Draw(t, "indent"))
			if err != nil {
				t.Fatal(err)
			}
			body.WriteString([]string{"{", ","}[min(i, 1)] + string(k) + " : " + string(v))
		}
		var a Answer
		var r Reader
		r.Start(&a, Responses, tokens.O200k, "application/json")
		var s jsonScanner
		s.begins(a.form.answer)
		for rest := []byte(body.String() + "}"); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			s.feed(rest[:n], &a)
			rest = rest[n:]
		}
		if a.Usage() != want {
			t.Fatalf("%s: %+v, want %+v", body.String(), a.Usage(), want)
		}
	})
}

func drawJSON(t *rapid.T, depth int) any {
	switch k := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case k == 0:
		return rapid.String().Draw(t, "s")
	case k == 1:
		return rapid.Float64Range(-1e6, 1e6).Draw(t, "f")
	case k == 2:
		return nil
	case depth == 0:
		return `"usage":{"prompt_tokens":1}`
	case k == 3:
		return []any{drawJSON(t, depth-1), drawJSON(t, depth-1)}
	default:
		return map[string]any{"usage": drawJSON(t, depth-1), "error": drawJSON(t, depth-1)}
	}
}

// The same bytes give the same answer however they are cut, and nothing makes the reader panic or hold much.
func FuzzAnswer(f *testing.F) {
	types := []string{"text/event-stream", "application/json", "application/x-ndjson", "application/vnd.amazon.eventstream"}
	for _, row := range answerRows(f) {
		media, _, _ := strings.Cut(row.contentType, ";")
		f.Add(uint8(slices.Index(types, media)), uint8(row.api), []byte(row.body), uint64(5))
	}
	f.Add(uint8(0), uint8(Chat), []byte("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\r\n\r\ndata:{\"usage\":{\"prompt_tokens\":1}}\r\r"), uint64(5))
	f.Fuzz(func(t *testing.T, kind, call uint8, body []byte, seed uint64) {
		contentType := types[int(kind)%len(types)]
		api := Chat + API(call)%(numAPIs-Chat)
		whole := answerIn(api, contentType, body, func(left int) int { return left })
		single := answerIn(api, contentType, body, func(int) int { return 1 })
		mixed := answerIn(api, contentType, body, func(left int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return 1 + int(seed>>33)%left
		})
		if !sameAnswer(&whole, &single) || !sameAnswer(&whole, &mixed) {
			t.Fatalf("%v %q: %+v, %+v, %+v", api, body, whole.Usage(), single.Usage(), mixed.Usage())
		}
		if u := whole.Usage(); u.Input < -1 || u.Output < -1 || u.Input > maxDeclared || whole.Output() < 0 || len(whole.event.data) > maxEvent {
			t.Fatalf("%+v", u)
		}
	})
}

// An event of any length is not held, and its usage is found.
func TestLongEvents(t *testing.T) {
	for name, row := range map[string]struct{ contentType, before, after string }{
		"SSE":    {"text/event-stream", "event: x\r\ndata: ", "\r\n\r\n"},
		"lines":  {"application/x-ndjson", "", "\n"},
		"array":  {"application/json", "[", "]"},
		"frames": {"application/vnd.amazon.eventstream", "\x00\x98\x96\x80\x00\x00\x00\x00????", ""},
	} {
		var r Reader
		var a Answer
		r.Start(&a, Responses, tokens.O200k, row.contentType)
		a.Feed([]byte(row.before + `{"type":"response.completed","response":{"output":[{"usage":1,"content":[{"text":"`))
		for range 100 {
			a.Feed(bytes.Repeat([]byte("a"), 90_000))
			if len(a.event.data) > maxEvent {
				t.Fatalf("%s: %d bytes are held", name, len(a.event.data))
			}
		}
		a.Feed([]byte(`"}]}],"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":2},"output_tokens":9}}}` + row.after))
		if u := a.Usage(); u.Input != 3 || u.Output != 9 || u.CacheRead != 2 {
			t.Errorf("%s: %+v", name, u)
		}
		if a.Output() != 0 {
			t.Errorf("%s: what the last event repeats counted as %d tokens", name, a.Output())
		}
	}
}

func BenchmarkReadChat(b *testing.B) {
	for _, size := range []int{2 << 10, 32 << 10, 256 << 10} {
		body := fmt.Appendf(nil, `{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"%s"}]}`, strings.Repeat("hola que tal, ", size/14))
		b.Run(fmt.Sprint(size>>10, "KB"), func(b *testing.B) {
			var r Reader
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				r.Open(Chat, body, exactly)
				r.Count()
			}
		})
	}
}

func BenchmarkOpenChat(b *testing.B) {
	body := fmt.Appendf(nil, `{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"%s"}]}`, strings.Repeat("hola que tal, ", 146))
	var r Reader
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r.Open(Chat, body, exactly)
	}
}

func BenchmarkStream(b *testing.B) {
	var stream strings.Builder
	for range 100 {
		stream.WriteString(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}` + "\n\n")
	}
	events := []byte(stream.String())
	var r Reader
	b.SetBytes(int64(len(events)))
	b.ReportAllocs()
	for b.Loop() {
		var a Answer
		r.Start(&a, Chat, tokens.O200k, "text/event-stream")
		a.Feed(events)
	}
}

// The last event of a stream is known by what it is, not by what it quotes.
func TestLastEvent(t *testing.T) {
	for event, want := range map[string]bool{
		"[DONE]": true, " [DONE] ": true, `{"type":"message_stop"}`: true, `{ "type" : "response.completed" ,"response":{}}`: true,
		`{"type":"response.incomplete"}`: true, `{"type":"response.failed"}`: true, "": false, "[DONE": false, "{": false, `{"type":`: false,
		`{"type":"message_delta"}`: false, `{"delta":"message_stop"}`: false, `{"choices":[{"delta":{"content":"[DONE]"}}]}`: false,
	} {
		if got := isLast([]byte(event)); got != want {
			t.Errorf("%s: %v", event, got)
		}
	}
}
