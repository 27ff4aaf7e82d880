// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// rawJSON draws the contents of a valid JSON string. encoding/json takes invalid UTF-8 for U+FFFD, so that is in it, too.
func rawJSON() *rapid.Generator[string] {
	plain := rapid.Custom(func(t *rapid.T) string {
		return strings.Map(func(r rune) rune {
			if r < ' ' || r == '"' || r == '\\' {
				return 'x'
			}
			return r
		}, rapid.String().Draw(t, "plain"))
	})
	hex := rapid.StringMatching(`\\u([0-9a-fA-F]{4}|00[0-7][0-9a-f]|[dD][89abAB][0-9a-f]{2}|[dD][c-fC-F][0-9a-f]{2})`)
	pair := rapid.StringMatching(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)
	other := rapid.SampledFrom([]string{`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, "\xff", "\xe4\xb8", "\xed\xa0\x80", "中", "u0041", "/"})
	parts := rapid.SliceOfN(rapid.OneOf(plain, hex, pair, other), 0, 30)
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(parts.Draw(t, "parts"), "") })
}

// TestCountJSONReadsAsEncodingJSON compares the text itself, too, as many texts have the same count.
func TestCountJSONReadsAsEncodingJSON(t *testing.T) {
	counters := []*Counter{New(O200k), New(Cl100k)}
	gen := rawJSON()
	rapid.Check(t, func(t *rapid.T) {
		raw := gen.Draw(t, "raw")
		var text string
		if err := json.Unmarshal([]byte(`"`+raw+`"`), &text); err != nil {
			t.Fatal(err)
		}
		for _, c := range counters {
			checkJSON(t, c, raw, text)
		}
	})
}

func checkJSON(t interface{ Fatalf(string, ...any) }, c *Counter, raw, text string) {
	for _, most := range []int{1, 3, len(raw) + 1} { // in parts of any size
		var b []byte
		for rest := raw; rest != ""; {
			b, rest = decode(b, rest, len(b)+most)
		}
		if got := string([]rune(string(b))); got != text {
			t.Fatalf("%q is read as %q, not %q", raw, got, text)
		}
	}
	if got, want := c.CountJSON(raw), c.Count(text); got != want {
		t.Fatalf("%v: %d tokens in %q, not %d", c.family, got, raw, want)
	}
}

// TestCountJSONOfBrokenEscapes: they count as they stand.
func TestCountJSONOfBrokenEscapes(t *testing.T) {
	c := New(O200k)
	for _, x := range []struct{ raw, text string }{
		{`\`, `\`},
		{`a\`, `a\`},
		{`\x`, `\x`},
		{`\u`, `\u`},
		{`\u12`, `\u12`},
		{`\u12g4 \n`, "\\u12g4 \n"},
		{`\U0041`, `\U0041`},
		{`\ud83d\u`, "\uFFFD\\u"},
		{`\ud83d\ude0`, "\uFFFD\\ude0"},
		{`\ud83d\n`, "\uFFFD\n"},
		{`\ud83d\ud83d\ude00`, "\uFFFD😀"},
		{`\ude00\ud83d`, "\uFFFD\uFFFD"},
		{`\\u0041`, `\u0041`},
		{"\xc3\\u00a9", "\uFFFD©"},
		{`say "hi"\t`, "say \"hi\"\t"},
	} {
		checkJSON(t, c, x.raw, x.text)
	}
}

func FuzzCountJSON(f *testing.F) {
	for _, s := range []string{"", "plain", `\n\u4e2d\ud83d\ude00`, `\ud83d\u0041\`, "\xff\\u00", `"\/\x`} {
		f.Add(s)
	}
	counters := []*Counter{New(O200k), New(Cl100k)}
	f.Fuzz(func(t *testing.T, raw string) {
		var text string
		valid := json.Unmarshal([]byte(`"`+raw+`"`), &text) == nil
		for _, c := range counters {
			if valid {
				checkJSON(t, c, raw, text)
			} else if n := c.CountJSON(raw); n > 3*len(raw) || n == 0 && raw != "" {
				t.Fatalf("%v: %d tokens in %q", c.family, n, raw)
			}
		}
	})
}
