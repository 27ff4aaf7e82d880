// SPDX-License-Identifier: Apache-2.0

// Package stable sorts. Those of package slices are compiled anew for each type of element, which in WebAssembly is 13 to 30 KB
// each time; here one sort serves all types.
package stable

import "sort"

// Sort sorts s so that less holds; what is equal keeps its order.
func Sort[T any](s []T, less func(a, b *T) bool) {
	sort.Stable(&list{
		n:    len(s),
		less: func(i, j int) bool { return less(&s[i], &s[j]) },
		swap: func(i, j int) { s[i], s[j] = s[j], s[i] },
	})
}

type list struct {
	n    int
	less func(i, j int) bool
	swap func(i, j int)
}

func (l *list) Len() int           { return l.n }
func (l *list) Less(i, j int) bool { return l.less(i, j) }
func (l *list) Swap(i, j int)      { l.swap(i, j) }
