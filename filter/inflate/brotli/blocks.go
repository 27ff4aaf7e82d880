// SPDX-License-Identifier: Apache-2.0

package brotli

// blocks is how the symbols of one kind (literals, commands, distances) come: in blocks, each of a type.
type blocks struct {
	types     int
	typeCode  code
	countCode code
	left      int // of the block
	current   int // its type
	previous  int
	codes     []code  // that the types use
	choice    []uint8 // which one, by type and context
}

// counts are the lengths of blocks: a base and how many bits more, by symbol.
var counts = [26]struct {
	base uint16
	bits uint8
}{
	{1, 2}, {5, 2}, {9, 2}, {13, 2}, {17, 3}, {25, 3}, {33, 3}, {41, 3}, {49, 4}, {65, 4}, {81, 4}, {97, 4}, {113, 5}, {145, 5}, {177, 5}, {209, 5},
	{241, 6}, {305, 6}, {369, 7}, {497, 8}, {753, 9}, {1265, 10}, {2289, 11}, {4337, 12}, {8433, 13}, {16625, 24},
}

const maxBlock = 1 << 24

// blockTypes reads the types of one kind.
func (r *Reader) blockTypes(k *blocks) error {
	k.types, k.left, k.current, k.previous = r.bits.count(), maxBlock, 0, 1
	if k.types == 1 {
		return nil
	}
	if err := r.prefix(&k.typeCode, k.types+2); err != nil {
		return err
	}
	if err := r.prefix(&k.countCode, len(counts)); err != nil {
		return err
	}
	k.left = r.blockCount(k)
	return nil
}

func (r *Reader) blockCount(k *blocks) int {
	c := counts[k.countCode.decode(&r.bits)]
	return int(c.base) + r.bits.take(int(c.bits))
}

// enter takes one symbol of the block, or of the next if it is over.
func (r *Reader) enter(k *blocks) {
	if k.left == 0 && k.types > 1 {
		t := k.typeCode.decode(&r.bits) - 2
		switch t {
		case -2:
			t = k.previous
		case -1:
			if t = k.current + 1; t == k.types {
				t = 0
			}
		}
		k.previous, k.current = k.current, t
		k.left = r.blockCount(k)
	}
	k.left--
}

// readCodes reads so many codes.
func (r *Reader) readCodes(k *blocks, n, alphabet int) error {
	for len(k.codes) < n {
		k.codes = append(k.codes, code{})
	}
	for i := range n {
		if err := r.prefix(&k.codes[i], alphabet); err != nil {
			return err
		}
		if err := r.bits.failed(); err != nil {
			return err
		}
	}
	return nil
}

// contextMap reads which code is for which type and context, and gives the number of codes.
func (r *Reader) contextMap(k *blocks, contexts int) (codes int, err error) {
	size := k.types * contexts
	if cap(k.choice) < size {
		k.choice = make([]uint8, size)
	}
	k.choice = k.choice[:size]
	clear(k.choice)
	if err := r.spend(size); err != nil {
		return 0, err
	}
	if codes = r.bits.count(); codes == 1 {
		return 1, nil
	}
	runs := 0
	if r.bits.flag() {
		runs = r.bits.take(4) + 1
	}
	var c code
	if err := r.prefix(&c, codes+runs); err != nil {
		return 0, err
	}
	for i := 0; i < size; {
		v := c.decode(&r.bits)
		switch {
		case v > runs:
			k.choice[i] = uint8(v - runs)
			fallthrough
		case v == 0:
			i++
		default:
			if i += 1<<v + r.bits.take(v); i > size {
				return 0, ErrCorrupt
			}
		}
	}
	if r.bits.flag() {
		err = r.moveToFront(k.choice)
	}
	return codes, err
}

// moveToFront undoes the transform of that name.
func (r *Reader) moveToFront(choice []uint8) error {
	var recent [256]uint8
	for i := range recent {
		recent[i] = uint8(i)
	}
	for i, place := range choice {
		v := recent[place]
		choice[i] = v
		if place > 0 {
			copy(recent[1:int(place)+1], recent[:place])
			recent[0] = v
			if err := r.spend(8 + int(place)/8); err != nil {
				return err
			}
		}
	}
	return nil
}
