// SPDX-License-Identifier: Apache-2.0

package jsonwalk

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
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

// Eight bytes at a time find what one at a time finds.
func TestIndexByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(rapid.SampledFrom([]byte("\"#!\xa2\x22\x23\x00\x01\x80\xff\\")), 0, 40).Draw(t, "s"))
		c := rapid.SampledFrom([]byte("\"\\\x00\x01\x80\xff")).Draw(t, "c")
		if got, want := indexByte(s, c), strings.IndexByte(s, c); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}
