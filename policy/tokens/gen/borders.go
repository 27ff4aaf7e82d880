// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
)

// borderRow is the number of bytes told apart on one side of a border: 0x80..0xBF before it and 0xC0..0xFF behind it as
// 0..63, all of ASCII as 64.
const borderRow = 65

// borders gives for each pair of bytes around the border of two characters the lowest rank of a token that crosses it and
// has a part only of one of the two.
func borders(tokens []string) []uint32 {
	lowest := slices.Repeat([]uint32{math.MaxUint32}, borderRow*borderRow)
	for rank, t := range tokens {
		var cross []int // where in t a character begins, but for its start
		for i := 1; i < len(t); i++ {
			if !continues(t[i]) {
				cross = append(cross, i)
			}
		}
		if cross == nil {
			continue
		}
		put := func(i int) {
			k := column(t[i-1])*borderRow + column(t[i])
			lowest[k] = min(lowest[k], uint32(rank))
		}
		if continues(t[0]) {
			put(cross[0])
		}
		if last := cross[len(cross)-1]; len(t)-last < charLen(t[last]) {
			put(last)
		}
	}
	return lowest
}

func continues(b byte) bool { return b&0xC0 == 0x80 }

func column(b byte) int {
	if b < 0x80 {
		return borderRow - 1
	}
	return int(b & 63)
}

// charLen gives the length of a character by its first byte.
func charLen(b byte) int {
	n := 1
	for _, least := range []byte{0xC0, 0xE0, 0xF0} {
		if b >= least {
			n++
		}
	}
	return n
}
