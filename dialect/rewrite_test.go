// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirproxy/weir/policy/tokens"
)

func TestSetModel(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"gpt-4o","n":1}`:                                 `{"model":"mini","n":1}`,
		" {\n \"model\" : \"gpt-4o\" ,\"a\":{\"model\":\"x\"} }\n": " {\n \"model\" : \"mini\" ,\"a\":{\"model\":\"x\"} }\n",
		`{"model":"a","x":[{"model":"b"}],"model":"c"}`:            `{"model":"mini","x":[{"model":"b"}],"model":"mini"}`,
		`{"m\u006fdel":"a\"b","text":"\"model\":\"a\""}`:           `{"m\u006fdel":"mini","text":"\"model\":\"a\""}`,
		"\ufeff{\"model\":null}":                                   "\ufeff{\"model\":\"mini\"}",
		`{"a":1}`:                                                  "", `[{"model":"a"}]`: "", `{"model":"a"`: "", ``: "", `x{"model":"a"}`: "",
	} {
		if got := string(SetModel([]byte(body), "mini")); got != want {
			t.Errorf("%s became %s, want %s", body, got, want)
		}
	}
	if got := string(SetModel([]byte(`{"model":""}`), `a"\b`)); got != `{"model":"a\"\\b"}` {
		t.Error(got)
	}
}

func TestSetCap(t *testing.T) {
	for _, row := range []struct {
		d    Dialect
		a    API
		body string
		want string
	}{
		{OpenAI, Chat, `{"max_tokens":900,"n":2}`, `{"max_tokens":512,"n":2}`},
		{OpenAI, Chat, `{"max_tokens":100}`, `{"max_tokens":100}`},
		{OpenAI, Chat, `{"max_tokens":100,"max_completion_tokens":1e9}`, `{"max_tokens":100,"max_completion_tokens":512}`},
		{OpenAI, Chat, `{"max_tokens":9000,"max_tokens":1,"m\u0061x_tokens":"700"}`, `{"max_tokens":512,"max_tokens":1,"m\u0061x_tokens":512}`},
		{OpenAI, Chat, `{"max_tokens":null,"a":{"max_tokens":900}}`, `{"max_tokens":512,"a":{"max_tokens":900}}`},
		{OpenAI, Chat, `{"a":1}`, `{"max_completion_tokens":512,"a":1}`},
		{Mistral, Chat, `{ }`, `{"max_tokens":512 }`},
		{OpenAI, Responses, "\ufeff{\"max_output_tokens\": 5000}", "\ufeff{\"max_output_tokens\": 512}"},
		{Anthropic, Messages, `{"max_tokens":512.5}`, `{"max_tokens":512}`},
		{Anthropic, Messages, `{"max_tokens":0}`, `{"max_tokens":0}`},
		{Gemini, Generate, `{"generation_config":{"maxOutputTokens":8192,"x":1}}`, `{"generation_config":{"maxOutputTokens":512,"x":1}}`},
		{Gemini, Generate, `{"contents":[]}`, `{"generationConfig":{"maxOutputTokens":512},"contents":[]}`},
		{Gemini, Generate, `{"generationConfig":null,"a":1}`, `{"generationConfig":{"maxOutputTokens":512},"a":1}`},
		{Gemini, Generate, `{"generationConfig":{"maxOutputTokens":8192},"generationConfig":{}}`,
			`{"generationConfig":{"maxOutputTokens":512},"generationConfig":{"maxOutputTokens":512}}`},
		{Bedrock, Converse, `{"inferenceConfig":{"topP":1}}`, `{"inferenceConfig":{"maxTokens":512,"topP":1}}`},
		{Bedrock, Invoke, `{"inferenceConfig":{"max_new_tokens":600},"max_gen_len":600}`, `{"inferenceConfig":{"max_new_tokens":512},"max_gen_len":512}`},
		{Bedrock, Invoke, `{"prompt":"x"}`, `{"prompt":"x"}`},
		{Ollama, OllamaChat, `{"options":{"num_predict":-1}}`, `{"options":{"num_predict":512}}`},
		{OpenAI, Embeddings, `{"max_tokens":900}`, `{"max_tokens":900}`},
		{OpenAI, Completions, `{"max_tokens":null}`, `{"max_tokens":null}`},
		{OpenAI, Completions, `{"max_tokens":600}`, `{"max_tokens":512}`},
		{OpenAI, Chat, `[]`, ``},
	} {
		if got := string(SetCap(row.d, row.a, []byte(row.body), 512)); got != row.want {
			t.Errorf("%v: %s became %s, want %s", row.a, row.body, got, row.want)
		}
	}
}

// In the path the model's name changes and nothing else does; of an odd path nothing is made.
func TestSetPathModel(t *testing.T) {
	for _, row := range []struct {
		d          Dialect
		path, want string
	}{
		{OpenAI, "/azure/openai/deployments/gpt-4o/chat/completions?api-version=1", "/azure/openai/deployments/m%201/chat/completions?api-version=1"},
		{OpenAI, "/openai/v1/chat/completions", ""},
		{Gemini, "/gemini/v1beta/models/gemini-pro:streamGenerateContent?alt=sse&key=models", "/gemini/v1beta/models/m%201:streamGenerateContent?alt=sse&key=models"},
		{Anthropic, "/v/publishers/anthropic/models/claude:rawPredict", "/v/publishers/anthropic/models/m%201:rawPredict"},
		{Bedrock, "/b/model/arn%3Aaws%3Abedrock%3A%3A%3Aprofile%2Fclaude/Converse-Stream", "/b/model/m%201/Converse-Stream"},
		{Gemini, "/gemini/v1beta/models/gemini-pro%3AgenerateContent", ""},
		{OpenAI, "/openai//deployments//gpt-4o/chat%2Fcompletions", ""},
	} {
		if got := row.d.SetPathModel("POST", row.path, "m 1"); got != row.want {
			t.Errorf("%s became %q, want %q", row.path, got, row.want)
		}
	}
	if got := OpenAI.SetPathModel("POST", "/deployments/a/chat/completions", "b/chat"); got != "" {
		t.Errorf("a name that would be read otherwise: %q", got)
	}
}

// Whatever the body, all of it stays but the model's name; who reads it again finds the new one.
// names says whether any member names a model, and each that does this one, if one is given.
func names(m map[string]any, model any) (any bool) {
	for key, value := range m {
		if isOneOf(key, modelNames) {
			if any = true; model != nil && value != model {
				return false
			}
		}
	}
	return any
}

func FuzzSetModel(f *testing.F) {
	f.Add([]byte(`{"model":"a","Model":"b"}`), "c") // of which Go's parsers take the last
	f.Add([]byte(`{"model":"a","m":{"model":1},"mode\u006c":[1,{"model":2}]}`), "b")
	f.Add([]byte("\ufeff \r\n{\"a\":\"\\\\\",\"model\":{\"model\":\"x\"}}x"), `"`)
	f.Fuzz(func(t *testing.T, body []byte, model string) {
		got := SetModel(body, model)
		plain := []byte(strings.TrimPrefix(string(body), byteOrderMark))
		var before, after map[string]any
		if json.Unmarshal(plain, &before) != nil || !json.Valid([]byte(quoted(model))) || !utf8.ValidString(model) {
			return
		}
		var name string
		if json.Unmarshal([]byte(quoted(model)), &name) != nil {
			t.Fatal(quoted(model))
		}
		if !names(before, nil) {
			if got != nil {
				t.Fatalf("%s became %s", body, got)
			}
			return
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(string(got), byteOrderMark)), &after) != nil || !names(after, name) {
			t.Fatalf("%s became %s", body, got)
		}
		for _, m := range []map[string]any{before, after} {
			maps.DeleteFunc(m, func(key string, _ any) bool { return isOneOf(key, modelNames) })
		}
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%s became %s", body, got)
		}
		var r Reader
		q, ok := r.Open(Chat, got, func(string) tokens.Family { return 0 })
		if !ok || q.Model != name[:min(len(name), maxModel)] {
			t.Fatalf("%s is read as one for %q, want %q", got, q.Model, name)
		}
		again := SetModel(got, model) // only values of that key are touched
		if string(again) != string(got) {
			t.Fatalf("%s became %s", got, again)
		}
	})
}

// Whatever the body, it declares no more than the cap afterwards, no more than it did, and says all else as before.
func FuzzSetCap(f *testing.F) {
	f.Add(uint8(0), []byte(`{"max_tokens":900,"max_completion_tokens":null}`), int64(100))
	f.Add(uint8(0), []byte(`{"max_tokens":90,"max_completion_tokens":null}`), int64(100))
	f.Add(uint8(0), []byte(`{"max_tokens":null,"max_tokens":null}`), int64(100))
	f.Add(uint8(5), []byte(`{"generationConfig":{"a":1},"generation_config":{"max_output_tokens":7}}`), int64(1))
	f.Add(uint8(0), []byte(`{"mAx_tokens":900}`), int64(100)) // parsers of Go's take that
	f.Add(uint8(7), []byte(`{"Options":{"NUM_PREDICT":900}}`), int64(100))
	f.Fuzz(func(t *testing.T, kind uint8, body []byte, most int64) {
		kinds := []struct {
			d Dialect
			a API
		}{{OpenAI, Chat}, {Mistral, Chat}, {OpenAI, Responses}, {OpenAI, Completions}, {Anthropic, Messages}, {Gemini, Generate}, {Bedrock, Converse}, {Ollama, OllamaChat}}
		k := kinds[int(kind)%len(kinds)]
		most = max(most, 1) % maxDeclared
		var before, after map[string]any
		if json.Unmarshal(body, &before) != nil || before == nil || most < 1 {
			return
		}
		got := SetCap(k.d, k.a, body, most)
		if json.Unmarshal(got, &after) != nil {
			t.Fatalf("%s became %s", body, got)
		}
		var r Reader
		family := func(string) tokens.Family { return 0 }
		was, _ := r.Open(k.a, body, family)
		wasN := r.members.count(kN)
		is, _ := r.Open(k.a, got, family)
		if k.a == Completions && most < defaultCompletion { // which holds where none is declared
			most = defaultCompletion
		}
		if n := max(r.members.count(kN), r.members.count(kBestOf)); is.Output > times(most, n) || was.Output >= 0 && is.Output > was.Output || wasN != r.members.count(kN) {
			t.Fatalf("%s declares %d, and then, as %s, %d", body, was.Output, got, is.Output)
		}
		for _, c := range k.a.caps(k.d) {
			for _, m := range []map[string]any{before, after} {
				strip(m, c)
			}
		}
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%s became %s", body, got)
		}
	})
}

// strip takes out what may have changed.
func strip(m map[string]any, c outputCap) {
	for key, value := range m {
		inner, ok := value.(map[string]any)
		switch {
		case c.in == nil && isOneOf(key, c.names), isOneOf(key, c.in) && value == nil:
			delete(m, key)
		case isOneOf(key, c.in) && ok:
			for name := range inner {
				if isOneOf(name, c.names) {
					delete(inner, name)
				}
			}
			if len(inner) == 0 {
				delete(m, key)
			}
		}
	}
}
