// SPDX-License-Identifier: Apache-2.0

package stable

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSort(t *testing.T) {
	type pair struct{ key, at int }
	rapid.Check(t, func(t *rapid.T) {
		var s []pair
		for i, k := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 100).Draw(t, "keys") {
			s = append(s, pair{k, i})
		}
		want := slices.Clone(s)
		slices.SortStableFunc(want, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
		if Sort(s, func(a, b *pair) bool { return a.key < b.key }); !slices.Equal(s, want) {
			t.Fatal(s)
		}
	})
}
