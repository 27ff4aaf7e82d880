// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weirproxy/weir/policy/tokens"
	"pgregory.net/rapid"
)

// What reaches the model counts, wherever in a body it stands: behind a key that stands twice, in what should be a word, in a
// tool of the caller's own kind, in what only servers of open models read.
func TestNothingIsHidden(t *testing.T) {
	text := strings.Repeat("hello world ", 1000) // 2000 tokens
	for _, row := range []struct {
		api  API
		body string
	}{
		{Chat, `{"messages":[{"role":"user","content":[{"type":"text","text":"a","text":"TEXT"}]}]}`},
		{Chat, `{"messages":[{"role":"user","content":[{"type":"refusal","refusal":"a","text":"TEXT","t\u0079pe":"text"}]}]}`},
		{Chat, `{"messages":[{"role":"user","content":"TEXT"}],"messages":[]}`},
		{Chat, `{"messages":[{"role":"TEXT","content":"a"}]}`},
		{Chat, `{"messages":[{"role":"tool","tool_call_id":"TEXT","content":"a"}]}`},
		{Chat, `{"messages":[],"tools":[{"type":"function","function":{"name":"f","name":"TEXT"}}]}`},
		{Chat, `{"messages":[],"tools":[{"type":"custom","custom":{"name":"f","description":"TEXT"}}]}`},
		{Chat, `{"messages":[{"role":"assistant","tool_calls":[{"id":"TEXT","function":{"name":"x","arguments":"a"}}]}]}`},
		{Chat, `{"messages":[{"role":"assistant","tool_calls":[{"id":"x","type":"custom","custom":{"name":"x","input":"TEXT"}}]}]}`},
		{Chat, `{"messages":[],"documents":[{"text":"TEXT"}]}`},
		{Chat, `{"messages":[],"chat_template":"TEXT"}`},
		{Responses, `{"input":[{"type":"function_call","name":"f","arguments":"{}","arguments":"TEXT"}]}`},
		{Responses, `{"input":[{"role":"TEXT","content":"a"}]}`},
		{Responses, `{"input":[{"content":"a","content":"TEXT"}]}`},
		{Generate, `{"contents":[{"parts":[{"text":"a"}],"parts":[{"text":"TEXT"}]}]}`},
		{Converse, `{"messages":[{"content":[{"toolUse":{"name":"a","input":"a","input":"TEXT"}}]}]}`},
	} {
		var r Reader
		body := []byte(strings.ReplaceAll(row.body, "TEXT", text))
		if _, ok := r.Open(row.api, body, func(string) tokens.Family { return tokens.O200k }); !ok {
			t.Fatalf("%s is not read", row.body)
		}
		if q := r.Count(); q.Input < 1900 {
			t.Errorf("%s counts %d tokens", row.body, q.Input)
		}
	}
}

// Doubled finds what a map of keys for each object finds.
func TestDoubledKeys(t *testing.T) {
	var k keyStack
	rapid.Check(t, func(t *rapid.T) {
		twice := false
		var object func(depth int) string
		object = func(depth int) string {
			seen, out := map[string]bool{}, []string{}
			for range rapid.IntRange(0, 3).Draw(t, "members") + rapid.SampledFrom([]int{0, 0, 0, 60}).Draw(t, "many") {
				key := fmt.Sprint("k", rapid.IntRange(0, 2000).Draw(t, "key"))
				twice = twice || seen[key]
				seen[key] = true
				value := `"a \":{\" b"`
				if depth < 3 && rapid.IntRange(0, 9).Draw(t, "nested") == 0 {
					value = "[1," + object(depth+1) + "]"
				}
				out = append(out, fmt.Sprintf(" %q : %s", key, value))
			}
			return "{" + strings.Join(out, ",") + "}"
		}
		body := object(0)
		if !json.Valid([]byte(body)) {
			t.Fatalf("no JSON: %s", body)
		}
		if k.doubled(body) != twice {
			t.Errorf("%v for %s", !twice, body)
		}
	})
}

// A path that is written with needless escapes is what it is for the server, too.
func TestNeedlessEscapes(t *testing.T) {
	for path, want := range map[string]API{
		"/v1/%63hat/completions": Chat, "/v1/chat%2Fcompletion%73": Chat, "/v1/%6": Unrecognised,
		"/v1/%zz/completions": Completions,
	} {
		if got := OpenAI.APIOf("POST", path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if !Climbs("/v1/x/%2e%2e/chat/completions") {
		t.Error("an escaped dot segment is not seen")
	}
}
