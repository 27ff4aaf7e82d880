// SPDX-License-Identifier: Apache-2.0

package brotli

import "math/bits"

// prefix reads a code for an alphabet of so many symbols.
func (r *Reader) prefix(c *code, alphabet int) error {
	if err := r.spend(256 + alphabet); err != nil {
		return err
	}
	skip := r.bits.take(2)
	if skip == 1 {
		return r.simple(c, alphabet)
	}
	var own code // of lengths
	if err := r.lengthsCode(&own, skip); err != nil {
		return err
	}
	return r.lengths(c, &own, alphabet)
}

// simple reads a code of up to four symbols.
func (r *Reader) simple(c *code, alphabet int) error {
	n := r.bits.take(2) + 1
	width := bits.Len(uint(alphabet - 1))
	var symbols [4]int
	for i := range n {
		symbols[i] = r.bits.take(width)
		for _, other := range symbols[:i] {
			if other == symbols[i] {
				return ErrCorrupt
			}
		}
		if symbols[i] >= alphabet {
			return ErrCorrupt
		}
	}
	shape := [4][4]uint8{{}, {1, 1}, {1, 2, 2}, {2, 2, 2, 2}}[n-1]
	if n == 4 && r.bits.flag() {
		shape = [4]uint8{1, 2, 3, 3}
	}
	if n == 1 {
		c.single(symbols[0])
		return nil
	}
	lengths := r.scratch[:alphabet]
	clear(lengths)
	for i, s := range symbols[:n] {
		lengths[s] = shape[i]
	}
	c.build(lengths)
	return nil
}

// lengthOrder is the order in which the lengths of the code for lengths come.
var lengthOrder = [18]uint8{1, 2, 3, 4, 0, 5, 17, 6, 16, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// lengthsCode reads the code in which the lengths of another are written; its own lengths are in a fixed code.
func (r *Reader) lengthsCode(c *code, skip int) error {
	var lengths [18]uint8
	space, used, last := 32, 0, 0
	for _, symbol := range lengthOrder[skip:] {
		v := r.bits.peek(4)
		l := [16]uint8{0, 4, 3, 2, 0, 4, 3, 1, 0, 4, 3, 2, 0, 4, 3, 5}[v]
		r.bits.drop([16]int{2, 2, 2, 3, 2, 2, 2, 4, 2, 2, 2, 3, 2, 2, 2, 4}[v])
		if l == 0 {
			continue
		}
		lengths[symbol] = l
		used, last, space = used+1, int(symbol), space-32>>l
		if space <= 0 {
			break
		}
	}
	switch {
	case used == 1:
		c.single(last)
	case space != 0:
		return ErrCorrupt
	default:
		c.build(lengths[:])
	}
	return nil
}

// lengths reads the lengths of a code.
func (r *Reader) lengths(c, own *code, alphabet int) error {
	lengths := r.scratch[:alphabet]
	clear(lengths)
	space, previous := 1<<15, uint8(8)
	repeat, repeated := 0, uint8(0) // of the last run
	for i := 0; i < alphabet && space > 0; {
		l := uint8(own.decode(&r.bits))
		if l < 16 {
			lengths[i] = l
			i++
			repeat = 0
			if l > 0 {
				previous = l
				space -= 1 << 15 >> l
			}
			continue
		}
		width, value := int(l)-14, previous
		if l == 17 {
			value = 0
		}
		if repeated != value {
			repeat = 0
		}
		before := repeat
		if repeat > 0 {
			repeat = (repeat - 2) << width
		}
		repeated = value
		repeat += r.bits.take(width) + 3
		n := repeat - before
		if n > alphabet-i {
			return ErrCorrupt
		}
		for ; n > 0; n-- {
			lengths[i] = value
			i++
			if value > 0 {
				space -= 1 << 15 >> value
			}
		}
	}
	if space != 0 {
		return ErrCorrupt
	}
	c.build(lengths)
	return nil
}
