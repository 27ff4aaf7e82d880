// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// naiveRank looks s up, as long as it may be.
func naiveRank(c *Counter, s string) uint32 {
	if len(s) > c.view.longest() {
		return c.view.noRank
	}
	return c.view.rank(hash(s, 0, len(s)))
}

// naiveMerge counts as the definition says: from single bytes on, the leftmost join of lowest rank, again and again.
func naiveMerge(c *Counter, s string) int {
	var parts []string
	var joins []uint32 // the rank of part k and the next joined
	for i := range len(s) {
		parts = append(parts, s[i:i+1])
		joins = append(joins, naiveRank(c, s[i:min(i+2, len(s))]))
	}
	for {
		joins[len(parts)-1] = c.view.noRank
		k := slices.Index(joins, slices.Min(joins))
		if joins[k] == c.view.noRank {
			return len(parts)
		}
		parts[k] += parts[k+1]
		parts, joins = slices.Delete(parts, k+1, k+2), slices.Delete(joins, k+1, k+2)
		for _, left := range []int{k - 1, k} {
			if left >= 0 && left+1 < len(parts) {
				joins[left] = naiveRank(c, parts[left]+parts[left+1])
			}
		}
	}
}

// exactCounters makes a counter for each vocabulary that is linked.
func exactCounters() (counters []*Counter) {
	for _, f := range exactFamilies {
		if f.Exact() {
			counters = append(counters, New(f))
		}
	}
	return counters
}

// naiveCount cuts s, which is valid, by the pattern alone, and merges each piece.
func naiveCount(c *Counter, s string) int {
	if qwenLinked && c.enc == encQwen {
		s = strings.Clone(c.normal.nfc(s))
	}
	n, begin := 0, 0
	for _, end := range endsOf(c.enc, s) {
		n += naiveMerge(c, s[begin:end])
		begin = end
	}
	return n
}

var alphabets = []string{
	"a", "ab", "aA", "etaoinshrdlu", "abcdefghijklmnopqrstuvwxyz", " ", " \t", "-=", "!?.,;:", "\n", "中国人的", "กานอเ", "привет",
	"éèa", "😀👍🏽", "한국어", "مرحبا", "नमस्ते", "o\u0301\u0308", "ô", "日本のア", "0123456789", "wht", "\r\n/ '",
}

// TestMerge merges pieces of all lengths, wherever they stand in the text.
func TestMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	counters := exactCounters()
	for n := range 2000 {
		size := 2 + r.IntN(200)
		if n%100 == 0 {
			size = 1000 + r.IntN(7000)
		}
		s := randomText(r, size)
		for _, c := range counters {
			want := naiveMerge(c, s)
			for _, behind := range []string{"", "x", "12345678"} {
				c.begin()
				if got := c.merged(s+behind, 0, len(s)); got != want {
					t.Fatalf("%v: %d tokens in %.100q, %d bytes, not %d", c.family, got, s, len(s), want)
				}
			}
		}
	}
}

// TestNarrowMarginsAreWidened: where the margin is this small the end of a window now and then reaches the seam. That has
// to be noticed.
func TestNarrowMarginsAreWidened(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	c := New(O200k)
	for n := range 100 {
		s := randomText(r, 15_000)
		want := c.mergeLong(s, 0, len(s), leastMargin)
		for _, least := range []int{2, 4} {
			if got := c.mergeLong(s, 0, len(s), least); got != want {
				t.Fatalf("text %d: %d tokens in %.100q with a margin of %d, not %d", n, got, s, least, want)
			}
		}
	}
}

// randomText takes characters of one or two alphabets.
func randomText(r *rand.Rand, size int) string {
	set := []rune(alphabets[r.IntN(len(alphabets))])
	if r.IntN(3) == 0 {
		set = append(set, []rune(alphabets[r.IntN(len(alphabets))])...)
	}
	var b strings.Builder
	for b.Len() < size {
		b.WriteRune(set[r.IntN(len(set))])
	}
	return b.String()
}

// TestCountIsTheNaiveCount tries all of count: cut, short way, cache and merge.
func TestCountIsTheNaiveCount(t *testing.T) {
	counters := exactCounters()
	word := rapid.Custom(func(t *rapid.T) string {
		set := rapid.SampledFrom(alphabets).Draw(t, "alphabet")
		return rapid.StringOfN(rapid.RuneFrom([]rune(set)), 1, 12, -1).Draw(t, "word")
	})
	text := rapid.SliceOfN(rapid.OneOf(word, rapid.String()), 0, 20)
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(text.Draw(t, "text"), "")
		for _, c := range counters {
			if got, want := c.Count(s), naiveCount(c, s); got != want {
				t.Fatalf("%v: %d tokens in %q, not %d", c.family, got, s, want)
			}
		}
	})
}

func FuzzCount(f *testing.F) {
	for _, s := range []string{"", "a", "Hello, world's 12345\r\n\t x", "\xff\xe2\x82", "中A\u0301A's", "   \n  \n x", " whturn"} {
		f.Add([]byte(s))
	}
	counters := exactCounters()
	f.Fuzz(func(t *testing.T, b []byte) {
		repaired := string([]rune(string(b)))
		for _, c := range counters {
			if !utf8.Valid(b) && c.repair(string(b)) != repaired {
				t.Fatalf("%q is repaired to %q", b, c.repair(string(b)))
			}
			if got, want := c.CountBytes(b), naiveCount(c, repaired); got != want {
				t.Fatalf("%v: %d tokens in %q, not %d", c.family, got, b, want)
			}
		}
	})
}
