// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/weirproxy/weir/policy"
)

// Whatever is asked for, it is read as encoding/json reads it, or refused with what is wrong.
func FuzzReadFanout(f *testing.F) {
	f.Add([]byte(`{"provider":"openai","model":"gpt-4o","branches":8,"input_tokens":1000,"max_tokens":500,"tools":{"search":8,"x":{"calls":2,"provider":"mcp"}},"user":"a"}`))
	f.Add([]byte(`{"branches":1,"branches":2,"model":"\u0041"}`))
	f.Add([]byte(`{"tools":{"a":0}}`))
	who := policy.WhoSpec{User: []policy.Source{{Kind: policy.FromBody, Arg: "user.id"}}}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, _, wrong := readFanout(body, &who)
		if wrong != "" || !utf8.Valid(body) {
			return
		}
		var twin struct {
			Provider, Model string
			Branches        int64
			Input           *int64 `json:"input_tokens"`
			Output          *int64 `json:"max_tokens"`
			Tools           map[string]json.RawMessage
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(body, &members); err != nil {
			t.Fatalf("%s was read: %v", body, err)
		}
		for key := range members {
			if key != "user" && key != "provider" && key != "model" && key != "branches" && key != "input_tokens" && key != "max_tokens" && key != "tools" {
				t.Fatalf("%s was read, with %q", body, key)
			}
		}
		if err := json.Unmarshal(body, &twin); err != nil {
			t.Fatalf("%s was read: %v", body, err)
		}
		number := func(n *int64) int64 {
			if n == nil {
				return -1
			}
			return *n
		}
		if q.provider != twin.Provider || q.model != twin.Model || q.branches != twin.Branches || q.input != number(twin.Input) || q.output != number(twin.Output) {
			t.Fatalf("%s was read as %+v, want %+v", body, q, twin)
		}
		if q.branches < 0 || q.branches == 0 && len(q.tools) == 0 || len(q.tools) >= policy.MaxLegs {
			t.Fatalf("%s was read as %+v", body, q)
		}
		for _, tool := range q.tools {
			if _, ok := twin.Tools[tool.name]; !ok || tool.calls <= 0 {
				t.Fatalf("%s was read as %+v", body, q)
			}
		}
	})
}
