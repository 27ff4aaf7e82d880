// SPDX-License-Identifier: Apache-2.0

package tokens

import "math/bits"

// Eight bytes of text at once, in a word. A marked byte is 0x80, the others are 0.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// within marks the bytes of w from lo to hi, both ASCII.
func within(w, lo, hi uint64) uint64 {
	ascii := w &^ highs
	return (ascii + (0x80-lo)*ones) &^ (ascii + (0x7F-hi)*ones) &^ w & highs
}

// run returns where the run of marked bytes ends that begins with byte from < 8: the first byte that is not marked, or 8.
func run(marked uint64, from uint) uint {
	return uint(bits.TrailingZeros64(^marked&highs&(^uint64(0)<<(8*from&63)))) >> 3
}

// first keeps the first n bytes of w, 1 <= n <= 8.
func first(w uint64, n uint) uint64 {
	return w & (^uint64(0) >> ((64 - 8*n) & 63))
}

// lesser gives the lesser of two numbers below 1<<63 without a branch, which V8 would make of min.
func lesser(a, b uint64) uint64 {
	d := a - b
	return b + d&uint64(int64(d)>>63)
}
