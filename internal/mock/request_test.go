// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestParseRequest(t *testing.T) {
	rows := []struct {
		name, body      string
		input, reserved int64
	}{
		{"empty", `{}`, 0, 256},
		{"text", `{"messages":[{"role":"user","content":"12345678"}]}`, 2, 256},
		{"rounded up", `{"messages":[{"role":"user","content":"123456789"}]}`, 3, 256},
		{"parts", `{"messages":[{"content":[{"type":"text","text":"1234"},{"type":"image_url","image_url":{"url":"data:xxxxxxxx"}}]}]}`, 1, 256},
		{"system blocks", `{"system":[{"type":"text","text":"1234"}],"messages":[]}`, 1, 256},
		{"tool result", `{"messages":[{"content":[{"type":"tool_result","tool_use_id":"xxxxxxxx","content":[{"text":"1234"}]}]}]}`, 1, 256},
		{"escapes", `{"prompt":"\n\"\u0041\u20ac\ud83d\ude00"}`, 3, 256}, // 1+1+1+3+4 bytes
		{"utf-8", `{"prompt":"жжжж"}`, 2, 256},
		{"token ids", `{"prompt":[1,2,3]}`, 3, 256},
		{"lists of ids", `{"prompt":[[1,2],[3]]}`, 3, 512},
		{"prompts", `{"prompt":["1234","5678"],"max_tokens":10}`, 2, 20},
		{"larger cap binds", `{"max_tokens":10,"max_completion_tokens":20}`, 0, 20},
		{"responses", `{"max_output_tokens":7,"instructions":"1234","input":[{"content":[{"type":"input_text","text":"1234"}]}]}`, 2, 7},
		{"n", `{"max_tokens":10,"n":3}`, 0, 30},
		{"best_of", `{"max_tokens":10,"n":2,"best_of":4}`, 0, 40},
		{"null and odd types", `{"max_tokens":null,"n":"2","best_of":-1,"stream":null,"stream_options":null,"model":5}`, 0, 256},
		{"float", `{"max_tokens":1e2}`, 0, 100},
		{"huge", `{"max_tokens":1e300,"n":100}`, 0, maxTokens},
		{"tools by length", `{"tools":[{"a":1}]}`, 3, 256}, // 9 bytes
		{"escaped key", `{"max\u005ftokens":9}`, 0, 9},
	}
	for _, row := range rows {
		q, err := parseRequest([]byte(row.body), false)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		if in, out := q.inputTokens(), q.reserve(); in != row.input || out != row.reserved {
			t.Errorf("%s: input %d reserved %d, want %d and %d", row.name, in, out, row.input, row.reserved)
		}
	}
}

func TestParseRequestMembers(t *testing.T) {
	q, err := parseRequest([]byte(`{"model":"a\"b","stream":true,"stream_options":{"x":[],"include_usage":true},`+
		`"encoding_format":"base64","dimensions":8,"other":{"model":"no"}}`), false)
	if err != nil {
		t.Fatal(err)
	}
	if q.model != `a"b` || !q.stream || !q.includeUsage || !q.base64 || q.dimensions != 8 {
		t.Errorf("%+v", q)
	}
}

func TestParseRequestErrors(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `"x"`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":01}`, `{"a":1.}`, `{"a":"\x"}`, `{"a":"` + "\n" + `"}`,
		`{"a":tru}`, `{} x`, `{"a":nulll}`, `{"messages":[1 2]}`, strings.Repeat(`{"a":`, 2000) + `1` + strings.Repeat(`}`, 2000),
	} {
		if _, err := parseRequest([]byte(body), false); err == nil {
			t.Errorf("%.40q: no error", body)
		}
	}
}

// What stands before the cut is taken, wherever the cut falls.
func TestParseRequestCut(t *testing.T) {
	body := `{"model":"m","max_tokens":7,"messages":[{"role":"user","content":"a\u00e9b"}],"n":2,"stream":true}`
	for i := range len(body) {
		q, err := parseRequest([]byte(body[:i]), true)
		if err != nil {
			t.Fatalf("cut at %d: %v", i, err)
		}
		if i > 30 && (q.model != "m" || q.maxOutput != 7) {
			t.Fatalf("cut at %d: %+v", i, q)
		}
	}
	if _, err := parseRequest([]byte(`{"a":x`), true); err == nil {
		t.Error("a syntax error before the cut passed")
	}
}

// FuzzParseRequest holds the scanner against encoding/json: it accepts the same
// objects, and finds the same members.
func FuzzParseRequest(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`, chatBody(100),
		`{"prompt":[1,2,[3]],"n":1e1}`, `{"input":["a","\ud83d\ude00"],"model":"\u0041"}`, `{"a":[[[{}]]],"stream":true}`, `{"x":-0.5e+3}`,
	} {
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut bool) {
		q, err := parseRequest(b, cut)
		if q.textBytes < 0 || q.inputTokens() < 0 || q.reserve() < 0 || q.reserve() > maxTokens {
			t.Fatalf("%+v", q)
		}
		object := bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{"))
		valid := object && json.Valid(b)
		if !cut && valid != (err == nil) && !strings.Contains(errText(err), errDeep.Error()) {
			t.Fatalf("valid %v, but %v", valid, err)
		}
		if valid && err == nil {
			compareMembers(t, b, q)
		}
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// compareMembers reads the top level with encoding/json. Keys compare exactly
// there too, because the target is a map.
func compareMembers(t *testing.T, b []byte, q request) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return
	}
	var model string
	if json.Unmarshal(m["model"], &model) == nil && bytes.Count(b, []byte("mod")) == 1 && q.model != model {
		t.Fatalf("model %q, want %q", q.model, model)
	}
	if string(m["stream"]) == "true" && !q.stream && bytes.Count(b, []byte(`stream`)) == 1 {
		t.Fatal("stream not seen")
	}
	if len(m["messages"])+len(m["system"])+len(m["instructions"])+len(m["suffix"])+len(m["input"])+len(m["prompt"])+
		len(m["tools"])+len(m["functions"])+len(m["response_format"]) == 0 && q.inputTokens() != 0 {
		t.Fatalf("text from nowhere: %+v", q)
	}
	if q.textBytes > int64(len(b)) {
		t.Fatalf("more text than body: %+v", q)
	}
}
