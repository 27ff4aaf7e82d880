// SPDX-License-Identifier: Apache-2.0

package zstd

import (
	"encoding/binary"
	"math/bits"
)

// A backwards reader reads bits from the end of its bytes. The highest bit that is set in the last byte says where they begin.
type backwards struct {
	b []byte
	n int // bits left; below 0: more was read than is there, which reads as zeros
}

func readBackwards(b []byte) (r backwards, ok bool) {
	if len(b) == 0 || b[len(b)-1] == 0 {
		return r, false
	}
	return backwards{b, len(b)*8 - 9 + bits.Len8(b[len(b)-1])}, true
}

// peek gives the next k bits, at most 32.
func (r *backwards) peek(k int) int {
	from := r.n - k
	short := 0
	if from < 0 {
		if short = -from; short >= k {
			return 0
		}
		from, k = 0, k-short
	}
	i := from >> 3
	var v uint64
	if i+8 <= len(r.b) {
		v = binary.LittleEndian.Uint64(r.b[i:])
	} else {
		v = little(r.b[i:])
	}
	return int(v>>(from&7)&(1<<k-1)) << short
}

// take reads k bits.
func (r *backwards) take(k int) int {
	v := r.peek(k)
	r.n -= k
	return v
}

// A forwards reader reads bits from the beginning, the lowest of each byte first.
type forwards struct {
	b []byte
	n int // bits read; what is beyond the end reads as zeros
}

// peek gives the next k bits, at most 16.
func (r *forwards) peek(k int) int {
	i := min(r.n>>3, len(r.b))
	v := little(r.b[i:min(i+4, len(r.b))])
	return int(v >> (r.n & 7) & (1<<k - 1))
}

func (r *forwards) take(k int) int {
	v := r.peek(k)
	r.n += k
	return v
}
