// SPDX-License-Identifier: Apache-2.0

package tokens

import "testing"

func TestFamilyNames(t *testing.T) {
	for f, want := range map[Family]struct {
		name  string
		exact bool
	}{
		O200k:  {"o200k", true},
		Cl100k: {"cl100k", true},
		Claude: {"claude", false},
		Other:  {"other", false},
	} {
		if f.String() != want.name || f.Exact() != want.exact {
			t.Errorf("%v, exact %v; want %s, %v", f, f.Exact(), want.name, want.exact)
		}
		if g, ok := ParseFamily(want.name); g != f || !ok {
			t.Errorf("ParseFamily(%q) = %v, %v", want.name, g, ok)
		}
	}
	for _, name := range []string{"", "O200k", "gpt-4o", "Family(9)"} {
		if f, ok := ParseFamily(name); ok {
			t.Errorf("ParseFamily(%q) = %v", name, f)
		}
	}
	if f := Family(9); f.Exact() || f.String() != "Family(9)" {
		t.Errorf("%v, exact %v", f, f.Exact())
	}
}

func TestEstimatesAreRoundedUp(t *testing.T) {
	for _, x := range []struct {
		f       Family
		n, want int
	}{
		{O200k, 100, 100},
		{Cl100k, 100, 100},
		{Claude, 0, 0},
		{Claude, 1, 2},
		{Claude, 100, 115},
		{Claude, 101, 117},
		{Other, 100, 110},
		{Other, 11, 13},
		{Family(9), 100, 110},
	} {
		if got := x.f.scale(x.n); got != x.want {
			t.Errorf("%d tokens are %d for %v, not %d", x.n, got, x.f, x.want)
		}
	}
}

func TestSetCountsAsACounterDoes(t *testing.T) {
	const text = `The fleet counts \u00e9v\u00e9nements, 中文 и слова\n`
	var s Set
	for _, f := range []Family{O200k, Claude, Other, Family(9), Cl100k} {
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
