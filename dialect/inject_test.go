// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/weirproxy/weir/policy/tokens"
)

// A hint goes behind the last message or block, in place of an earlier one, and never before something cached.
func TestInjectHint(t *testing.T) {
	const old = `"[weir] Old."`
	for _, row := range []struct {
		api              API
		body, text, want string
	}{
		{Chat, `{"messages":[{"role":"user","content":"a"}],"n":1}`, "H.", `{"messages":[{"role":"user","content":"a"},{"role":"system","content":"[weir] H."}],"n":1}`},
		{Chat, "\ufeff { \"messages\" : [ {\"role\":\"user\"} , {\"role\":\"tool\"} ] } ", `a"\`, "\ufeff { \"messages\" : [{\"role\":\"user\"},{\"role\":\"tool\"},{\"role\":\"system\",\"content\":\"[weir] a\\\"\\\\\"}] } "},
		{Chat, `{"messages":[{"role":"system","content":` + old + `},{"role":"user","content":` + old + `}]}`, "H.", `{"messages":[{"role":"user","content":` + old + `},{"role":"system","content":"[weir] H."}]}`},
		{Chat, `{"messages":[{"role":"user","content":"a"},{"content":` + old + `,"role":"developer"}]}`, "", `{"messages":[{"role":"user","content":"a"}]}`},
		{Chat, `{"messages":[{"role":"user","content":"a"}]}`, "", ""},
		{Chat, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"Go on"}]}`, "H.", ""},
		{Chat, `{"messages":[]}`, "H.", ""}, {Chat, `{"messages":"a"}`, "H.", ""}, {Chat, `{"a":1}`, "H.", ""}, {Chat, `{"messages":[{}]`, "H.", ""}, {Chat, `[]`, "H.", ""}, {Chat, ``, "H.", ""},
		{Responses, `{"input":"a"}`, "H.", `{"input":[{"role":"user","content":"a"},{"role":"developer","content":"[weir] H."}]}`},
		{Responses, `{"input":[{"type":"function_call_output","output":"1"}]}`, "H.", `{"input":[{"type":"function_call_output","output":"1"},{"role":"developer","content":"[weir] H."}]}`},
		{Responses, `{"prompt":{"id":"p"}}`, "H.", ""},
		{Messages, `{"messages":[]}`, "H.", `{"system":[{"type":"text","text":"[weir] H."}],"messages":[]}`},
		{Messages, `{}`, "H.", `{"system":[{"type":"text","text":"[weir] H."}]}`},
		{Messages, `{"system":"s"}`, "H.", `{"system":[{"type":"text","text":"s"},{"type":"text","text":"[weir] H."}]}`},
		{Messages, `{"system":"s"}`, "", ""}, {Messages, `{"system":""}`, "H.", `{"system":[{"type":"text","text":"[weir] H."}]}`},
		{Messages, `{"system":[{"type":"text","text":"s","cache_control":{}},{"type":"text","text":` + old + `}]}`, "H.", `{"system":[{"type":"text","text":"s","cache_control":{}},{"type":"text","text":"[weir] H."}]}`},
		{Messages, `{"system":"s","messages":[{"content":[{"cache_control":{"type":"ephemeral"}}]}]}`, "H.", ""},
		{Messages, `{"system":"s","cache_control":{"type":"ephemeral"}}`, "H.", ""},
		{Messages, `{"system":[{"type":"text","text":` + old + `}],"cache_control":{"type":"ephemeral"}}`, "H.", `{"system":[],"cache_control":{"type":"ephemeral"}}`},
		{Converse, `{"system":[{"text":"s"},{"cachePoint":{}}]}`, "H.", `{"system":[{"text":"s"},{"cachePoint":{}},{"text":"[weir] H."}]}`},
		{Converse, `{"messages":[]}`, "H.", ""}, {Converse, `{"system":[],"messages":[{"content":[{"cachePoint":{}}]}]}`, "H.", ""},
		{Generate, `{"system_instruction":{"role":"x","parts":[{"text":"s"}]}}`, "H.", `{"system_instruction":{"role":"x","parts":[{"text":"s"},{"text":"[weir] H."}]}}`},
		{Generate, `{"systemInstruction":{"parts":[{"text":` + old + `}]}}`, "H.", `{"systemInstruction":{"parts":[{"text":"[weir] H."}]}}`},
		{Generate, `{"contents":[]}`, "H.", ""}, {Generate, `{"systemInstruction":"s"}`, "H.", ""}, {Generate, `{"systemInstruction":{"parts":[]},"cachedContent":"c"}`, "H.", ""},
		{Embeddings, `{"input":"a"}`, "H.", ""},
	} {
		if got := string(InjectHint(row.api, []byte(row.body), row.text)); got != row.want {
			t.Errorf("%v %s with %q became\n%s, want\n%s", row.api, row.body, row.text, got, row.want)
		}
	}
}

// Only where such a message is taken.
func TestTakesHint(t *testing.T) {
	for _, row := range []struct {
		d      Dialect
		api    API
		family tokens.Family
		want   bool
	}{
		{OpenAI, Chat, tokens.O200k, true}, {OpenAI, Chat, tokens.Llama, false}, {Mistral, Chat, tokens.O200k, false}, {OpenAI, Embeddings, tokens.O200k, false},
		{OpenAI, Responses, tokens.Cl100k, true}, {Anthropic, Messages, tokens.Claude, true}, {Gemini, Generate, tokens.Gemini, true},
		{Bedrock, Converse, tokens.Other, true}, {Bedrock, Invoke, tokens.Claude, false}, {Ollama, OllamaChat, tokens.Llama, false},
	} {
		if got := row.d.TakesHint(row.api, row.family); got != row.want {
			t.Errorf("%v %v %v: %v", row.d, row.api, row.family, got)
		}
	}
}

// Whatever the body, nothing of it changes but that the hint comes behind the last message, and a second one takes its place.
func FuzzInjectHint(f *testing.F) {
	f.Add(byte(Chat), []byte(`{"messages":[{"role":"user","content":"\"}]"},{"role":"system","content":"[weir] x"}],"messages":[{}]}`))
	f.Add(byte(Messages), []byte(`{"system":[{"type":"text","text":"[weir] x"},{"a":[{}]}],"messages":[{"content":1}]}`))
	f.Add(byte(Messages), []byte(`{"system":"a\u0041","\u0073ystem":null}`))
	f.Add(byte(Responses), []byte(`{"input":"a","model":"x"}`))
	f.Add(byte(Generate), []byte(`{"systemInstruction":{"parts":[{"text":"a"}],"role":"r"}}`))
	f.Add(byte(Converse), []byte(`{"system":[{"text":"a"}],"messages":[]}`))
	places := map[API]string{Chat: "messages", Responses: "input", Messages: "system", Converse: "system", Generate: "systemInstruction"}
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		api := API(which) % numAPIs
		got := InjectHint(api, body, "Hint.")
		var before, after map[string]any
		if got == nil || json.Unmarshal(body, &before) != nil || strings.Contains(string(body), `\`) && strings.Contains(string(body), "weir] ") {
			return // a mark that is written in another way is none
		}
		if again := InjectHint(api, InjectHint(api, body, "Another."), "Hint."); string(again) != string(got) {
			t.Fatalf("%s\nwith two hints became %s\nwith one %s", body, again, got)
		}
		if !strings.Contains(string(got), `"[weir] Hint."`) {
			return // only an earlier one was taken out
		}
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%s became %s: %v", body, got, err)
		}
		place := places[api]
		if _, ok := after[place]; !ok && api == Generate {
			place = "system_instruction"
		}
		was, is := listOf(before[place]), listOf(after[place])
		if len(is) == 0 || !marked(is[len(is)-1]) {
			t.Fatalf("%s became %s, which does not end with the hint", body, got)
		}
		var kept []any
		for _, item := range was {
			if !marked(item) {
				kept = append(kept, item)
			}
		}
		if rest := is[:len(is)-1]; len(rest) != len(kept) || len(kept) > 0 && !reflect.DeepEqual(rest, kept) {
			t.Fatalf("%s became %s: other elements", body, got)
		}
		delete(before, place)
		delete(after, place)
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%s became %s: other members", body, got)
		}
	})
}

// listOf is the messages or blocks that a value stands for.
func listOf(v any) []any {
	switch v := v.(type) {
	case string:
		if v != "" {
			return []any{v}
		}
	case []any:
		var list []any
		for _, e := range v {
			if m, ok := e.(map[string]any); ok && len(m) == 2 && (m["role"] == "user" || m["type"] == "text") { // a string, made a list
				for _, k := range []string{"content", "text"} {
					if s, ok := m[k].(string); ok && !strings.HasPrefix(s, HintMark) {
						e = s
					}
				}
			}
			list = append(list, e)
		}
		return list
	case map[string]any:
		return listOf(v["parts"])
	}
	return nil
}

// marked says whether an element is a hint.
func marked(v any) bool {
	m, _ := v.(map[string]any)
	for _, k := range []string{"content", "text"} {
		if s, ok := m[k].(string); ok && strings.HasPrefix(s, HintMark) {
			role, ok := m["role"].(string)
			return !ok && k == "text" || role == "system" || role == "developer" // a block has no role, a message has
		}
	}
	return false
}
