// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"
)

// TestEstimateLines: each line is answered with its id as it is written; what is wrong is told with the line's number.
func TestEstimateLines(t *testing.T) {
	for _, row := range []struct{ args, in, out, err string }{
		{"--jsonl -", `{"id":12345678901234567890,"text":"hello world"}` + "\r\n\n" + `{"id":{"a":"<b>"},"text":""}`,
			`{"id":12345678901234567890,"input_tokens":2,"output_tokens":0,"model":"gpt-4o","how":"exact"}` + "\n" +
				`{"id":{"a":"<b>"},"input_tokens":0,"output_tokens":0,"model":"gpt-4o","how":"exact"}` + "\n", ""},
		{"--jsonl -", `{"text":"hello world"}`, `{"input_tokens":2,"output_tokens":0,"model":"gpt-4o","how":"exact"}` + "\n", ""},
		{"--jsonl --model claude-x -", `{"id":1,"text":"hello world"}`, `{"id":1,"input_tokens":2,"output_tokens":0,"model":"claude-x","how":"estimate"}` + "\n", ""},
		{"--jsonl -", `{"id":1,"body":"{\"model\":\"gpt-4\",\"n\":2,\"max_tokens\":5,\"messages\":[{\"role\":\"user\",\"content\":\"hello world\"}]}"}`,
			`{"id":1,"input_tokens":9,"output_tokens":10,"dialect":"openai","model":"gpt-4","how":"exact"}` + "\n", ""},
		{"--jsonl -", `{"id":1,"body":"no JSON"}`, `{"id":1,"input_tokens":2,"output_tokens":1024,"dialect":"openai","model":"","how":"length"}` + "\n", ""},
		{"--jsonl -", "\n" + `{"id":1}`, "", "line 2: it has neither body nor text"},
		{"--jsonl -", `{"id":1,"body":{}}`, "", "line 1: body is no string"},
		{"--jsonl -", `{"id":1,"text":7}`, "", "line 1: text is no string"},
		{"--jsonl -", `{"id":1,"text":"","body":""}`, "", "line 1: it has both body and text"},
		{"--jsonl -", `{"id":1,"text":"a"}` + "\n[]", `{"id":1,"input_tokens":1,"output_tokens":0,"model":"gpt-4o","how":"exact"}` + "\n", "line 2: no JSON object"},
		{"--text -", "hello world", `{"input_tokens":2,"output_tokens":0,"model":"gpt-4o","how":"exact"}` + "\n", ""},
	} {
		var out, errs strings.Builder
		code := run(context.Background(), append([]string{"estimate"}, strings.Fields(row.args)...), streams{strings.NewReader(row.in), &out, &errs})
		if out.String() != row.out || !strings.Contains(errs.String(), row.err) || (code == 0) != (row.err == "") {
			t.Errorf("%s: code %d\n%s%s\nwant\n%s%s", row.in, code, out.String(), errs.String(), row.out, row.err)
		}
	}
}
