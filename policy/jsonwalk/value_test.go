// SPDX-License-Identifier: Apache-2.0

package jsonwalk

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

var seeds = []string{
	`{"a":[1,{"b":"\"}\u00e9\ud83d\ude00"}],"c":null,"a":{"b":-1.5e3}}`, `{"a":{},"a":{"b":1}}`, ` [true , false,null, "x" ] `, `"\ud800\u0041\/\b"`,
	`{"\u0061":{"b":{"c":"d"}}}`, `1E400`, `{"a" 1}`, `{"a":"x`, `[NaN,Infinity,nope]`, `{"a":"\`, `"\u12`, "{\"a\":\"\xff\"}", strings.Repeat(`[{"a":`, 50),
}

// What is JSON reads as gjson reads it; of what is none only pieces of it come.
func FuzzValue(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, "a.b")
	}
	f.Fuzz(func(t *testing.T, s, path string) {
		v := Parse(s)
		if !gjson.Valid(s) {
			pieces(t, s, v, 8)
			v.Get(path)
			return
		}
		s = strings.TrimRight(s, " \t\r\n")
		v = Parse(s)
		same(t, gjson.Parse(s), v, 8)
		if regexp.MustCompile(`^[a-z]+(\.[a-z]+)*$`).MatchString(path) && v.IsObject() {
			same(t, gjson.Get(s, path), v.Get(path), 8)
		}
	})
}

func same(t *testing.T, want gjson.Result, v Value, depth int) {
	types := map[gjson.Type]Type{gjson.Null: Null, gjson.False: False, gjson.Number: Number, gjson.String: String, gjson.True: True, gjson.JSON: JSON}
	if string(v) != want.Raw || v.Type() != types[want.Type] || v.Str() != want.Str || v.Num() != want.Num ||
		v.Exists() != want.Exists() || v.IsObject() != want.IsObject() || v.IsArray() != want.IsArray() {
		t.Fatalf("%q: %v %q %v; gjson has %v %q %v of %q", v, v.Type(), v.Str(), v.Num(), want.Type, want.Str, want.Num, want.Raw)
	}
	if depth == 0 {
		return
	}
	var keys []string
	var values []gjson.Result
	want.ForEach(func(key, v gjson.Result) bool {
		keys, values = append(keys, key.Str), append(values, v)
		return true
	})
	n := 0
	v.ForEach(func(key string, item Value) bool {
		if n == len(keys) || key != keys[n] {
			t.Fatalf("%q: key %d is %q, not one of %q", v, n, key, keys)
		}
		same(t, values[n], item, depth-1)
		n++
		return true
	})
	if n != len(keys) {
		t.Fatalf("%q: %d values, %q", v, n, keys)
	}
}

// pieces walks over anything: no piece is empty, and all of them together are no longer than the whole.
func pieces(t *testing.T, s string, v Value, depth int) {
	total := 0
	v.ForEach(func(key string, piece Value) bool {
		total += len(piece)
		if piece == "" || total > len(s) || !strings.Contains(s, string(piece)) {
			t.Fatalf("%q: a piece %q", s, piece)
		}
		if depth > 0 && piece != v {
			pieces(t, string(piece), piece, depth-1)
		}
		return true
	})
	v.Str()
	v.Num()
}

// A string's escapes are resolved as encoding/json does.
func FuzzUnescape(f *testing.F) {
	for _, s := range []string{`a\n\u00e9`, `\ud83d\ude00\ud83d`, `\ud83d\u0041`, `\\\"`, `\x`, `\`, `\u12`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Unescape(s)
		var want string
		if json.Unmarshal([]byte(`"`+s+`"`), &want) == nil && strings.ToValidUTF8(s, "") == s && got != want {
			t.Fatalf("%q: %q, want %q", s, got, want)
		}
		if len(got) > len(s) {
			t.Fatalf("%q grew to %q", s, got)
		}
	})
}

func TestWalkingAllocatesNothing(t *testing.T) {
	s := `{"messages":[{"role":"user","content":"a \"b\""},{"role":"user","content":[1,2]}],"n":3}`
	if n := testing.AllocsPerRun(100, func() {
		total := 0
		v := Parse(s)
		v.Get("messages").ForEach(func(_ string, m Value) bool {
			total += len(m.Get("content").Quoted())
			return true
		})
		if total != 7 || v.Get("n").Num() != 3 {
			t.Fatal(total)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
