// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
)

// check makes sure of what package tokens takes for granted: all single bytes and all numbers of up to so many digits are
// tokens, every token comes out of its own merge, and both parts of a token have lower ranks than it has. lefts are the lengths of
// the left parts that a vocabulary of merges says: then its merges and the joining by ranks are the same.
func check(tokens []string, lefts []int, digits int) error {
	ranks := make(map[string]int, len(tokens))
	for r, t := range tokens {
		ranks[t] = r
	}
	for b := range 256 {
		if t := string([]byte{byte(b)}); !has(ranks, t) {
			return fmt.Errorf("no token: byte %#x", b)
		}
	}
	for width, limit := 1, 10; width <= digits; width, limit = width+1, limit*10 {
		for d := range limit {
			if t := fmt.Sprintf("%0*d", width, d); !has(ranks, t) {
				return fmt.Errorf("no token: %s", t)
			}
		}
	}
	for r, t := range tokens {
		left, ok := 0, true
		if len(t) > 1 {
			left, ok = merges(ranks, t, r)
		}
		if !ok || lefts != nil && left != lefts[r] {
			return fmt.Errorf("token %d, %q, does not come out of its own merge of two lower ones", r, t)
		}
	}
	return nil
}

func has(ranks map[string]int, t string) bool {
	_, ok := ranks[t]
	return ok
}

// merges says whether the bytes of t merge into two parts of ranks lower than r, which is that of t, and how long the left is.
func merges(ranks map[string]int, t string, r int) (left int, ok bool) {
	var parts []string
	for i := range len(t) {
		parts = append(parts, t[i:i+1])
	}
	for len(parts) > 2 {
		best, at := math.MaxInt, -1
		for k := range len(parts) - 1 {
			if r, ok := ranks[parts[k]+parts[k+1]]; ok && r < best {
				best, at = r, k
			}
		}
		if at < 0 {
			return 0, false
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
	return len(parts[0]), ranks[parts[0]] < r && ranks[parts[1]] < r
}
