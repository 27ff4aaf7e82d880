// SPDX-License-Identifier: Apache-2.0

package tokens

import "testing"

func TestFamilyNames(t *testing.T) {
	for f, want := range map[Family]struct {
		name  string
		exact bool
	}{
		O200k:    {"o200k", true},
		Cl100k:   {"cl100k", true},
		Claude:   {"claude", false},
		Claude47: {"claude-4.7", false},
		Other:    {"other", false},
	} {
		if f.String() != want.name || f.Exact() != want.exact {
			t.Errorf("%v, exact %v; want %s, %v", f, f.Exact(), want.name, want.exact)
		}
		if g, ok := ParseFamily(want.name); g != f || !ok {
			t.Errorf("ParseFamily(%q) = %v, %v", want.name, g, ok)
		}
	}
	for _, name := range []string{"", "O200k", "gpt-4o", "Family(99)"} {
		if f, ok := ParseFamily(name); ok {
			t.Errorf("ParseFamily(%q) = %v", name, f)
		}
	}
	if f := Family(99); f.Exact() || f.String() != "Family(99)" {
		t.Errorf("%v, exact %v", f, f.Exact())
	}
}

// TestEstimateOfATally: the factors are 1024ths, rounding is to the nearest, no text is free, and what is no family is Other.
func TestEstimateOfATally(t *testing.T) {
	if n := Claude.estimate(&tally{}); n != 1 {
		t.Errorf("a text of nothing is %d tokens", n)
	}
	x := tally{featDigit: 1000}
	for f := Claude; f < numFamilies; f++ {
		if n, want := f.estimate(&x), (int(factors[f][featDigit])*1000+512)/1024; n != max(want, 1) {
			t.Errorf("%v: 1000 digits are %d tokens, not %d", f, n, want)
		}
	}
	if Family(99).estimate(&x) != Other.estimate(&x) {
		t.Error("Family(99) is not counted as Other")
	}
	var s Set
	if n := s.Count(Claude, ""); n != 0 {
		t.Errorf("no text is %d tokens", n)
	}
}

func TestSetCountsAsACounterDoes(t *testing.T) {
	const text = `The fleet counts \u00e9v\u00e9nements, 中文 и слова\n`
	var s Set
	for _, f := range []Family{O200k, Claude, Other, Family(99), Cl100k} {
		c := New(f)
		if got, want := s.Count(f, text), int64(c.Count(text)); got != want {
			t.Errorf("%v: Count gives %d, not %d", f, got, want)
		}
		if got, want := s.CountBytes(f, []byte(text)), int64(c.CountBytes([]byte(text))); got != want {
			t.Errorf("%v: CountBytes gives %d, not %d", f, got, want)
		}
		if got, want := s.CountJSON(f, text), int64(c.CountJSON(text)); got != want {
			t.Errorf("%v: CountJSON gives %d, not %d", f, got, want)
		}
		if made := s.counters[encCl100k] != nil; made != (f == Cl100k) {
			t.Errorf("%v: a counter for cl100k was made: %v", f, made)
		}
	}
}
