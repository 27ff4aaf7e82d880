// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/policy/jsonwalk"
	"github.com/weirproxy/weir/policy/tokens"
)

func as(f tokens.Family) func(string) tokens.Family { return func(string) tokens.Family { return f } }

// TestToolsAsPublished compares with what openai-chat-tokens gives for the requests that gen/tools.mjs makes.
func TestToolsAsPublished(t *testing.T) {
	f, err := os.Open("testdata/tools.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r Reader
	var errors []float64
	bias, other := 0.0, 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var x struct {
			Body string
			Want int64
		}
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		r.Open(Chat, []byte(x.Body), as(tokens.Cl100k))
		got := r.Count().Input
		e := float64(got-x.Want) / float64(x.Want) * 100
		if got != x.Want {
			other++
			t.Logf("%d, want %d: %s", got, x.Want, x.Body)
		}
		bias += e
		errors = append(errors, max(e, -e))
	}
	slices.Sort(errors)
	n := len(errors)
	t.Logf("%d requests, %d differ; bias %.2f %%, median %.2f %%, p95 %.2f %%", n, other, bias/float64(n), errors[n/2], errors[n*95/100])
	if other > 0 {
		t.Errorf("%d of %d differ", other, n)
	}
}

func TestToolsOfOthersCountAsCompactJSON(t *testing.T) {
	const pretty = "[ {\"name\" : \"f\",\n\t\"input_schema\": { \"description\": \"a \\\" b  c\" } } ]"
	const compact = `[{"name":"f","input_schema":{"description":"a \" b  c"}}]`
	var r Reader
	r.family = tokens.Mistral
	if got, want := r.tools(jsonwalk.Parse(pretty)), r.set.Count(tokens.Mistral, compact); got != want {
		t.Errorf("%d, want %d", got, want)
	}
	r.family = tokens.Claude
	if got, want := r.tools(jsonwalk.Parse(pretty)), r.set.Count(tokens.Claude, compact)+anthropicToolsFrame; got != want {
		t.Errorf("%d, want %d", got, want)
	}
}

// TestHostileTools: what is no schema, is deep or is large costs bounded time and gives a number.
func TestHostileTools(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 5000) + `1` + strings.Repeat(`}}`, 5000)
	wide := `{"type":"object","properties":{` + strings.Repeat(`"a":{"type":"string","enum":["x","y"]},`, 20000) + `"b":1},"required":[` + strings.Repeat(`"a",`, 20000) + `"b"]}`
	var r Reader
	for _, parameters := range []string{"1", "null", `"x"`, "[]", `{"properties":3}`, `{"type":["string","null",3],"anyOf":[[[]]]}`, deep, wide,
		`{"properties":{"a":{"type":["object","null"],"properties":{"b":{}}},"c":{"items":[]},"d":{"enum":{}}}}`} {
		for _, f := range []tokens.Family{tokens.O200k, tokens.Claude, tokens.Qwen} {
			body := `{"messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":` + parameters + `}},7,null,"x"]}`
			r.Open(Chat, []byte(body), as(f))
			if n := r.Count().Input; n <= 0 || n > int64(2*len(body)+1000) {
				t.Errorf("%d tokens for %d bytes: %.80s", n, len(body), body)
			}
		}
	}
}
