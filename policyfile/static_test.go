// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/policy"
)

// A fixed reply travels in the policy as it is, and as a stream that says the same.
func TestStatic(t *testing.T) {
	for _, row := range []struct{ api, reply, stream string }{
		{"chat", `{"object":"chat.completion","id":"i","choices":[{"index":0,"message":{"role":"assistant","content":"a\nb","tool_calls":[{"id":"t"}]},"finish_reason":"stop"}],"usage":{}}`,
			`data: {"choices":[{"delta":{"content":"a\nb","role":"assistant","tool_calls":[{"id":"t","index":0}]},"finish_reason":null,"index":0,"logprobs":null}],"id":"i","object":"chat.completion.chunk"}

data: {"choices":[{"delta":{},"finish_reason":"stop","index":0,"logprobs":null}],"id":"i","object":"chat.completion.chunk"}

data: [DONE]

`},
		{"completions", `{"object":"text_completion","choices":[{"text":"x","finish_reason":"stop"}],"usage":{}}`,
			`data: {"choices":[{"finish_reason":"stop","text":"x"}],"object":"text_completion"}

data: [DONE]

`},
		{"generate", `{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}`,
			`data: {"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}

`},
		{"messages", `{"type":"message","role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"n","input":{"a":1}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":2}}`,
			`event: message_start
data: {"message":{"content":[],"role":"assistant","stop_reason":null,"stop_sequence":null,"type":"message","usage":{"input_tokens":0,"output_tokens":2}},"type":"message_start"}

event: content_block_start
data: {"content_block":{"text":"","type":"text"},"index":0,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"text":"x","type":"text_delta"},"index":0,"type":"content_block_delta"}

event: content_block_stop
data: {"index":0,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"id":"t","input":{},"name":"n","type":"tool_use"},"index":1,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"partial_json":"{\"a\":1}","type":"input_json_delta"},"index":1,"type":"content_block_delta"}

event: content_block_stop
data: {"index":1,"type":"content_block_stop"}

event: message_delta
data: {"delta":{"stop_reason":"end_turn","stop_sequence":null},"type":"message_delta","usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`},
	} {
		got := static(t, " "+row.reply+"\n")
		if got.API != row.api || got.Reply != row.reply || got.Stream != row.stream {
			t.Errorf("%s %s\n%s\nwant %s\n%s", got.API, got.Reply, got.Stream, row.reply, row.stream)
		}
	}
	got := static(t, `{"object":"response","id":"r","status":"completed","output":[{"type":"reasoning","id":"q"},{"type":"message","id":"m","content":[{"type":"output_text","text":"x"}]}]}`)
	var kinds []string
	for line := range strings.Lines(got.Stream) {
		if kind, ok := strings.CutPrefix(line, "event: response."); ok {
			kinds = append(kinds, strings.TrimSpace(kind))
		}
	}
	want := "created in_progress output_item.added output_item.done output_item.added content_part.added output_text.delta " +
		"output_text.done content_part.done output_item.done completed"
	if strings.Join(kinds, " ") != want {
		t.Errorf("%v", kinds)
	}
	for i := range kinds {
		if !strings.Contains(got.Stream, fmt.Sprintf(`"sequence_number":%d,`, i)) {
			t.Errorf("no event has number %d:\n%s", i, got.Stream)
		}
	}
}

// static reads a policy with a file beside it.
func static(t *testing.T, content string) *policy.StaticSpec {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.yaml")
	for name, data := range map[string]string{
		"policy.yaml": "apiVersion: weir/v1\nproviders: {openai: {upstream: 'https://api.openai.com'}}\ndegrade: {gpt-4o: {static: reply.json}}\n",
		"reply.json":  content,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := policy.Decode(r.JSON) // as the filter does
	if err != nil {
		t.Fatal(err)
	}
	return got.Degrade["gpt-4o"].Static
}

// What is no answer, or a long one, is refused with its place.
func TestBadStatic(t *testing.T) {
	for content, want := range map[string]string{
		``: "no JSON object", `[]`: "no JSON object", `{} {}`: "more than one", `{}`: "unknown form", `{"object":"chat.completion","choices":[]}`: "no choices",
		`{"object":"chat.completion","choices":[{}]}`: "without a message", `{"type":"message","content":[{"type":"text"}]}`: "no usage",
		`{"type":"message","usage":{},"content":[{"type":"x"}]}`: "block of type x", `{"object":"response","output":[1]}`: "something else",
		`{"candidates":"` + strings.Repeat("x", policy.MaxStatic) + `"}`: "more than 65536 bytes",
	} {
		file := filepath.Join(t.TempDir(), "reply.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Parse("policy.yaml", []byte("apiVersion: weir/v1\nproviders: {openai: {upstream: 'https://api.openai.com'}}\ndegrade: {gpt-4o: {static: "+file+"}}\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "policy.yaml:3:28: degrade.gpt-4o.static: ") {
			t.Errorf("%.60s: %v", content, err)
		}
	}
}
