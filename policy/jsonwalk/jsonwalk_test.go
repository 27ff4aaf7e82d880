// SPDX-License-Identifier: Apache-2.0

package jsonwalk

import (
	"encoding/json"
	"testing"
)

// What is JSON is walked whole, with the members that encoding/json finds; what is not never is, and ends the walk.
func FuzzWalk(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"\"}"}],"c":null}`, `{"parts"[{"x"0`, `[[],"]",{}]`, `{"a":1`, `{"a"`, `[1,`, "", `{"a":"\\"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, items := 0, 0
		object := Members(s, func(_, v string) bool { n++; return v != "" })
		array := Items(s, func(v string) bool { items++; return v != "" })
		var m map[string]json.RawMessage
		if json.Unmarshal([]byte(s), &m) == nil && m != nil && (!object || n < len(m)) {
			t.Fatalf("%q: %d members, whole %v; it has %d", s, n, object, len(m))
		}
		var list []json.RawMessage
		if json.Unmarshal([]byte(s), &list) == nil && list != nil && (!array || items != len(list)) {
			t.Fatalf("%q: %d items, whole %v; it has %d", s, items, array, len(list))
		}
		if object && array {
			t.Fatalf("%q is an object and an array", s)
		}
	})
}
