// SPDX-License-Identifier: Apache-2.0

package tokens

import "unsafe"

// Numbers with about as many ones as zeros in no order. The table holds for these only, so ./gen has the same.
const (
	mulLen   = 0x9E3779B97F4A7C15
	mulWord  = 0xE7037ED1A0B428DB
	mulLast  = 0xD6E8FEB86659FD93
	mulEnd   = 0xA0761D6478BD642F
	pilotMul = 0x9FB21C651E98DF24 // even, so that pilot*pilotMul+pilotAdd is odd
	pilotAdd = 0x8EBC6AF09C88C6E3
)

// load8 reads 8 bytes of s, little endian, without a check: the caller sees to it that 0 <= i and i+8 <= len(s).
func load8(s string, i int) uint64 {
	return load64(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))
}

// loadUpTo8 reads the n bytes at i, 1 <= n <= 8, the rest zero; s may end behind them.
func loadUpTo8(s string, i, n int) uint64 {
	if i+8 <= len(s) {
		return first(load8(s, i), uint(n))
	}
	if len(s) >= 8 {
		return first(load8(s, len(s)-8)>>(8*uint(i+8-len(s))&63), uint(n))
	}
	w := uint64(0)
	for k := n - 1; k >= 0; k-- {
		w = w<<8 | uint64(s[i+k])
	}
	return w
}

// hash gives the hash of s[i:j], j > i: eight bytes at a time; the last word of a longer string overlaps the one before.
func hash(s string, i, j int) uint64 {
	if j-i <= 8 {
		return hashShort(loadUpTo8(s, i, j-i), uint(j-i))
	}
	return hashLong(s, i, j)
}

// hashLong is hash for more than 8 bytes.
func hashLong(s string, i, j int) uint64 {
	x := uint64(j-i) * mulLen
	for ; j-i > 8; i += 8 {
		x = (x + load8(s, i)) * mulWord
		x ^= x >> 32
	}
	return hashEnd(x, load8(s, j-8))
}

// hashShort is hash for a string of n <= 8 bytes that stands in w, the rest of w zero.
func hashShort(w uint64, n uint) uint64 {
	return hashEnd(uint64(n)*mulLen, w)
}

// hashEnd ends a hash: w is the last word, x what came of the length and of the words before.
func hashEnd(x, w uint64) uint64 {
	x = (x + w) * mulLast
	x ^= x >> 32
	return x * mulEnd
}
