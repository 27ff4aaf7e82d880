// SPDX-License-Identifier: Apache-2.0

package jsonwalk

import (
	"math/bits"
	"runtime"
	"strings"
)

// IndexByte is strings.IndexByte, which in wasm looks at four bytes at a time, with twice the instructions.
func IndexByte(s string, c byte) int {
	if runtime.GOARCH == "wasm" {
		return indexByte(s, c)
	}
	return strings.IndexByte(s, c)
}

// indexByte looks at eight bytes at a time. What it finds is a byte that is 0 after an exclusive or with c in all of them: the lowest such
// byte is told right (Hacker's Delight, 6-1).
func indexByte(s string, c byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	all := ones * uint64(c)
	i := 0
	for ; i <= len(s)-8; i += 8 {
		w := eight(s[i:]) ^ all
		if found := (w - ones) & ^w & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(s); i++ {
		if s[i] == c {
			return i
		}
	}
	return -1
}

// eight are the first eight bytes of s, which the compiler reads at once.
func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
