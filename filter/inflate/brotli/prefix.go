// SPDX-License-Identifier: Apache-2.0

package brotli

import "math/bits"

// A code is a prefix code.
type code struct {
	fast    [256]uint16 // symbol<<4 | length by the next 8 bits; slow: the code is longer
	count   [16]uint16  // of codes by length
	symbols []uint16    // in the order of their codes
}

const slow = 0xFFFF

// decode reads a symbol.
func (c *code) decode(b *bitReader) int {
	v := b.peek(15)
	if e := c.fast[v&255]; e != slow {
		b.drop(int(e & 15))
		return int(e >> 4)
	}
	first, index, path := 0, 0, 0
	for length := 1; length < 16; length++ {
		path |= v & 1
		v >>= 1
		n := int(c.count[length])
		if path-first < n {
			b.drop(length)
			return int(c.symbols[index+path-first])
		}
		index, first, path = index+n, (first+n)<<1, path<<1
	}
	return 0 // a code that is complete has an end
}

// single makes a code of one symbol, which takes no bits.
func (c *code) single(symbol int) {
	for i := range c.fast {
		c.fast[i] = uint16(symbol << 4)
	}
}

// build makes a complete code from the lengths of its symbols.
func (c *code) build(lengths []uint8) {
	c.count = [16]uint16{}
	for _, l := range lengths {
		c.count[l]++
	}
	c.count[0] = 0
	var next, first [17]int // place and code of the next symbol of each length
	for l := 1; l < 16; l++ {
		next[l+1] = next[l] + int(c.count[l])
		first[l+1] = (first[l] + int(c.count[l])) << 1
	}
	if total := next[16]; cap(c.symbols) < total {
		c.symbols = make([]uint16, total)
	} else {
		c.symbols = c.symbols[:total]
	}
	for symbol, l := range lengths {
		if l == 0 {
			continue
		}
		c.symbols[next[l]] = uint16(symbol)
		c.enter(symbol, int(l), first[l])
		next[l]++
		first[l]++
	}
}

// enter puts a symbol into the table.
func (c *code) enter(symbol, length, path int) {
	reversed := int(bits.Reverse16(uint16(path))) >> (16 - length)
	if length > 8 {
		c.fast[reversed&255] = slow
		return
	}
	for i := reversed; i < 256; i += 1 << length {
		c.fast[i] = uint16(symbol<<4 | length)
	}
}
