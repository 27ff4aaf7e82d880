// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/policy/jsonwalk"
	"github.com/weirproxy/weir/policy/tokens"
)

func anyFamily(string) tokens.Family { return 0 }

// outlined is the outline of a body that comes in pieces of these sizes, and then as a whole.
func outlined(body []byte, sizes ...int) *Outline {
	o := new(Outline)
	for _, n := range sizes {
		n = min(n, len(body))
		o.Feed(body[:n])
		body = body[n:]
	}
	o.Feed(body)
	return o
}

// outlineWords are keys and texts among which those are that mislead: a model within a text, a text that ends in a backslash.
var outlineWords = []string{"model", "Model", "mo\u0064el", "user", "x", "", `"model":"decoy"`, `\`, `\\"`, "\\\",\"model\":\"decoy", "{", "}]", "ſ", "日本"}

// drawValue is any JSON value.
func drawValue(t *rapid.T, depth int) string {
	quoted := func(s string) string {
		b, _ := json.Marshal(s)
		if rapid.Bool().Draw(t, "escaped") {
			b = bytes.ReplaceAll(b, []byte("d"), []byte(`\u0064`))
		}
		return string(b)
	}
	kinds := 4
	if depth > 2 {
		kinds = 2
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return quoted(rapid.SampledFrom(outlineWords).Draw(t, "word"))
	case 1:
		return rapid.SampledFrom([]string{"0", "17", "-3", "1e3", "true", "false", "null"}).Draw(t, "scalar")
	case 2:
		return quoted(strings.Repeat(rapid.SampledFrom(outlineWords).Draw(t, "word"), rapid.SampledFrom([]int{1, 9, 3000}).Draw(t, "times")))
	case 3:
		return "[" + strings.Join(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return drawValue(t, depth+1) }), 0, 3).Draw(t, "items"), " , ") + "]"
	}
	var members []string
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		members = append(members, quoted(rapid.SampledFrom(outlineWords).Draw(t, "key"))+":"+drawValue(t, depth+1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// drawRequest is a body with the members that decide anywhere, some of them twice, and others between them.
func drawRequest(t *rapid.T) []byte {
	var members []string
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space") }
	for range rapid.IntRange(0, 9).Draw(t, "members") {
		m := rapid.SampledFrom([]string{
			`"model":"gpt-4o"`, `"model":"mini"`, `"MODEL" : "big"`, `"m\u006fdel":"esc"`, `"max_tokens":17`, `"max_tokens":900`, `"n":3`, `"stream":true`, `"stream":false`,
			`"stream_options":{"include_usage":true}`, `"user":"ada"`, `"user":"b\"ob"`, `"metadata":{"user_id":"m1","a":["}"]}`, `"min_tokens":4`, "",
		}).Draw(t, "member")
		if m == "" {
			key, _ := json.Marshal(rapid.SampledFrom([]string{"messages", "x", "tools", "y{", `"`}).Draw(t, "key"))
			m = string(key) + space() + ":" + space() + drawValue(t, 0)
		}
		members = append(members, m+space())
	}
	return []byte(space() + "{" + space() + strings.Join(members, ","+space()) + "}" + space())
}

// told is all that a body says that decides.
func told(r *Reader, q Request) string {
	return fmt.Sprintf("%q %v %v %d %d %q %q %q", q.Model, q.Stream, q.IncludeUsage, q.Output, q.Least, r.OtherModels(), r.Member("user"), r.Member("metadata.user_id"))
}

// Whatever a body is, wherever what is read of it ends, and in whichever pieces it comes: its outline says of it what it says
// itself when all of it is read.
func TestOutlineSaysWhatTheBodySays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := drawRequest(t)
		if !json.Valid(body) {
			t.Fatalf("the test draws what is no JSON: %s", body)
		}
		var whole, part Reader
		q, ok := whole.Open(Chat, body, anyFamily)
		if !ok {
			t.Fatalf("%s is no object", body)
		}
		want := told(&whole, q)
		o := outlined(body, rapid.SliceOfN(rapid.IntRange(1, 40), 0, 200).Draw(t, "pieces")...)
		cut := rapid.IntRange(bytes.IndexByte(body, '{')+1, len(body)).Draw(t, "cut")
		q, _ = part.OpenPart(Chat, body[:cut], o, int64(len(body)), anyFamily)
		if got := told(&part, q); got != want || o.Lost() || !o.Over() {
			t.Fatalf("%s:\n got %s, lost %v, over %v\nwant %s", body, got, o.Lost(), o.Over(), want)
		}
		model := struct{ Model string }{}
		if json.Unmarshal(body, &model) == nil && model.Model != q.Model {
			t.Fatalf("%s: the model is %q, for encoding/json %q", body, q.Model, model.Model)
		}
	})
}

// What is too long or too much is missed, and that is said where a model may be in it.
func TestOutlineIsBounded(t *testing.T) {
	long := strings.Repeat("a", maxShort)
	for _, row := range []struct {
		body  string
		model string
		lost  bool
	}{
		{`{"messages":["` + strings.Repeat(`{\"model\":\"no\"}`, 10_000) + `"],"model":"m"}`, "m", false},
		{`{"model":"m","tools":{"x":"` + long + `"},"user":"ada"}`, "m", false},
		{`{"model":"` + long + `"}`, "", true},
		{`{"model":"m","m\u006FDEL":"` + long + `"}`, "m", true},
		{`{"model":"m","` + long + `":1}`, "m", true},
		{"{" + strings.Repeat(`"x":1,`, maxOutline/5) + `"model":"m"}`, "m", false},
		{"{" + strings.Repeat(`"n":1,`, maxOutline/4) + `"model":"m"}`, "", true},
		{`{"model":"m","n":"` + long + `"}`, "m", true},
		{`{"model":"m"} {"model":"n"}`, "m", false}, {`["model",{"model":"m"}]`, "", false}, {`{"model":,"model":"m"}`, "", false}, {`{"a":1]"model":"m"}`, "", false},
		{byteOrderMark + `{"model":"m"}`, "m", false},
	} {
		o := outlined([]byte(row.body), 3, 1, 7)
		var r Reader
		q := r.OpenOutline(Chat, o, anyFamily)
		if q.Model != row.model || o.Lost() != row.lost || len(o.text) > maxOutline+2*maxShort || cap(o.text) > 2*(maxOutline+2*maxShort) {
			t.Errorf("%.60s: model %q, lost %v, %d bytes kept", row.body, q.Model, o.Lost(), len(o.text))
		}
	}
	o := new(Outline)
	o.Feed([]byte(`{"messages":"`))
	piece := []byte(strings.Repeat(`iVBORw0K\"`, 1000))
	if n := testing.AllocsPerRun(100, func() { o.Feed(piece) }); n > 0 || len(o.text) > maxShort {
		t.Errorf("%v allocations for a piece of a long text, %d bytes kept", n, len(o.text))
	}
}

// An outline has the members that a walk over the whole object finds, but for the long ones, whatever the pieces; of anything else
// it has something, or nothing.
func FuzzOutline(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"\"}"}],"model":null}`, `{"a":"\\\\","model":"x"}`, "\ufeff {\"a\" : 1 , \"b\":tru", `{"a"`, `{"a":"\`, `[]`, ``, `{"a":}`, `{"":0}`} {
		f.Add(s, uint(3))
	}
	f.Fuzz(func(t *testing.T, s string, size uint) {
		o, whole := new(Outline), new(Outline)
		for i := 0; i < len(s); i += int(size%64) + 1 {
			o.Feed([]byte(s[i:min(i+int(size%64)+1, len(s))]))
		}
		if whole.Feed([]byte(s)); string(o.text) != string(whole.text) || o.end != whole.end || o.lost != whole.lost || o.models != whole.models {
			t.Fatalf("%q in pieces: %q, as a whole: %q", s, o.text, whole.text)
		}
		if !json.Valid([]byte(s)) || o.lost || len(s) > maxOutline {
			return
		}
		var want, got [][2]string
		jsonwalk.Members(s, func(k, v string) bool {
			if len(k)+len(v)+3 <= maxShort {
				want = append(want, [2]string{k, v})
			}
			return true
		})
		jsonwalk.Members(string(o.text[:o.end]), func(k, v string) bool {
			got = append(got, [2]string{k, v})
			return true
		})
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Fatalf("%q: %q, want %q", s, got, want)
		}
	})
}

func BenchmarkOutline(b *testing.B) {
	for name, text := range map[string]string{
		"picture": strings.Repeat("iVBORw0KGgoAAAANSUhEUg", 3000),
		"code":    strings.Repeat(`if x == \"y\" {\n\treturn \"\\n\"\n}\n`, 2000),
		"numbers": `"],"x":[` + strings.Repeat("0.12345,", 8000) + `"`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				o := new(Outline)
				o.Feed([]byte(`{"messages":["`))
				o.Feed([]byte(text))
			}
		})
	}
}
