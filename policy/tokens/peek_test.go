// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"math/rand/v2"
	"testing"
)

// TestPeekCutsAsThePattern: where eight bytes are enough, they give the piece that the pattern cuts, whatever follows.
func TestPeekCutsAsThePattern(t *testing.T) {
	common := []rune("aabbzAZZ019  \t'',.\n\r/s\"{}:-_\x00\x1fé")
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []*Counter{New(O200k), New(Cl100k)} {
		told := 0
		for range 200_000 {
			s := ""
			for len(s) < 8+r.IntN(8) {
				s += string(common[r.IntN(len(common))])
			}
			n := peeked(c, s)
			if n == 0 {
				continue
			}
			told++
			if want := endsOf(c.enc, s)[0]; n != want {
				t.Fatalf("%v: the first piece of %q is %d bytes, not %d", c.family, s, n, want)
			}
		}
		if told < 50_000 {
			t.Errorf("%v: the short way was taken only %d times", c.family, told)
		}
	}
}

// peeked gives the length of the first piece as count takes it from peek; 0 if it does not.
func peeked(c *Counter, s string) int {
	switch n := int(c.rules.peek(load8(s, 0))); {
	case n >= goesOn:
		return c.rules.wordEnd(s, 8)
	case n >= oneToken:
		return n - oneToken
	default:
		return n
	}
}
