// SPDX-License-Identifier: Apache-2.0

package jsonwalk

import (
	"encoding/json"
	"strings"
	"testing"
)

// What is valid is so for encoding/json, too; where it stops being valid lies within it.
func FuzzInvalid(f *testing.F) {
	for _, s := range append(seeds, `{"a":1,}`, `[1,]`, `[1 2]`, `01`, `-`, `1.`, `1e`, `1e+5`, `{"a":[{}],"b":{}}`, "\"\n\"", `tru`, ` 1 2`, `{"a"}`, `{,}`, `[`, `{"`) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at := Invalid(s)
		if valid := json.Valid([]byte(s)); valid != (at < 0) && strings.Count(s, "{")+strings.Count(s, "[") <= maxDepth {
			t.Fatalf("%q: valid %v, but not at %d", s, valid, at)
		}
		if at > len(s)+len("false") {
			t.Fatalf("%q of %d bytes stops at %d", s, len(s), at)
		}
	})
}

func TestInvalidNesting(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	if Invalid(deep(maxDepth)) >= 0 || Invalid(deep(10_000_000)) < 0 {
		t.Error("the depth is not bounded as it should be")
	}
}
