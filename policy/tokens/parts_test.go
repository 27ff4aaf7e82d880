// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// long makes a text of many parts: words and blanks, and stretches of an alphabet without a blank.
func long(t *rapid.T) string {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
	var b strings.Builder
	for b.Len() < partSize*rapid.IntRange(1, 4).Draw(t, "parts") {
		a := []rune(alphabets[r.IntN(len(alphabets))])
		for range r.IntN(1 << r.IntN(12)) {
			b.WriteRune(a[r.IntN(len(a))])
		}
		b.WriteString([]string{" ", "", "\n", " a", "  ", "! ", "\u00a0 ", "\u3000 x", "'s ", "/ /"}[r.IntN(10)])
	}
	return b.String()
}

// TestTextInParts: however a text is cut, and whether it is a JSON string, it counts as if it came at once.
func TestTextInParts(t *testing.T) {
	var s Set
	rapid.Check(t, func(t *rapid.T) {
		text := long(t)
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []Family{O200k, Cl100k, Claude} {
			want := s.Count(f, text)
			x := s.Text(f)
			for rest := text; rest != ""; {
				n := rapid.IntRange(1, 3*partSize).Draw(t, "cut")
				n = min(n, len(rest))
				x.WriteString(rest[:n])
				rest = rest[n:]
			}
			if got := x.Count(); got != want {
				t.Errorf("%v: %d in parts, not %d", f, got, want)
			}
			if got := s.CountJSON(f, string(raw[1:len(raw)-1])); got != want {
				t.Errorf("%v: %d as a JSON string, not %d", f, got, want)
			}
		}
	})
}

// TestPartsStaySmall: a text with escapes and blanks takes a buffer of a part, however long it is.
func TestPartsStaySmall(t *testing.T) {
	c := New(O200k)
	c.CountJSON(strings.Repeat(`some words\n and more `, 100_000))
	if n := cap(c.decoded); n > 2*partSize {
		t.Errorf("%d bytes for a part", n)
	}
}

// TestHostileTexts: of a megabyte that is all to be merged only workMost bytes are, and the rest counts by its length, not
// far from what it is.
func TestHostileTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	random := func(alphabet string) string {
		a := []rune(alphabet)
		b := make([]rune, 1<<20)
		for i := range b {
			b[i] = a[r.IntN(len(a))]
		}
		return string(b)[:1<<20]
	}
	for name, text := range map[string]string{
		"letters": random("abcdefghijklmnopqrstuvwxyz"), "spaces": strings.Repeat(" ", 1<<20), "one letter": strings.Repeat("a", 1<<20),
		"words": random("abcdefgh     "), "invalid": strings.Repeat("\xff", 1<<20), "Thai": strings.ToValidUTF8(random("กาน้ำเอ"), ""),
	} {
		for _, f := range []Family{O200k, Cl100k, Claude47} {
			c := New(f)
			begin := time.Now()
			n := c.Count(text)
			t.Logf("%s, %v: %d tokens, %d bytes merged, %v", name, f, n, c.work.bytes, time.Since(begin))
			if c.work.bytes > workMost+window {
				t.Errorf("%s: %d bytes merged", name, c.work.bytes)
			}
			if n < len(text)/150 || n > 3*len(text) {
				t.Errorf("%s: %d tokens", name, n)
			}
		}
	}
}

// TestOrdinaryTextsAreCountedWhole: a megabyte of anything that people write is not work enough to be guessed.
func TestOrdinaryTextsAreCountedWhole(t *testing.T) {
	for name, text := range map[string]string{"prose": benchProse(), "json": benchJSON(), "code": benchCode(), "chinese": benchChinese()} {
		c := New(O200k)
		c.Count(strings.Repeat(text, 1<<20/len(text)+1))
		if c.work.bytes > workMost/2 {
			t.Errorf("%s: %s merged", name, fmt.Sprint(c.work.bytes))
		}
	}
}
