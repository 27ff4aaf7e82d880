// SPDX-License-Identifier: Apache-2.0

package zstd

import "math/bits"

// A huffman decodes literals: a row for each value of the next bits.
type huffman struct {
	bits int // 0: there is none yet
	rows [1 << maxHuffman]huffmanRow
}

type huffmanRow struct{ symbol, bits uint8 }

const maxHuffman = 11

// readLiterals reads the literals of a block and gives what follows them.
func (r *Reader) readLiterals(b []byte) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, ErrCorrupt
	}
	kind, format := b[0]&3, b[0]>>2&3
	if kind < 2 {
		header := [4]int{1, 2, 1, 3}[format]
		if len(b) < header {
			return nil, ErrCorrupt
		}
		shift := 4 - (format&1 ^ 1) // three bits of header where the format takes one of them only
		return r.plainLiterals(kind, int(little(b[:header])>>shift), b[header:])
	}
	header := [4]int{3, 3, 4, 5}[format]
	if len(b) < header {
		return nil, ErrCorrupt
	}
	width := [4]int{10, 10, 14, 18}[format]
	v := int(little(b[:header]) >> 4)
	size, packed := v&(1<<width-1), v>>width
	b = b[header:]
	if size > maxBlock || packed > len(b) {
		return nil, ErrCorrupt
	}
	return b[packed:], r.huffmanLiterals(b[:packed], size, kind == 2, format > 0)
}

// plainLiterals reads literals as they are, or one that is repeated.
func (r *Reader) plainLiterals(kind byte, size int, b []byte) (rest []byte, err error) {
	take := size
	if kind == 1 {
		take = 1
	}
	if size > maxBlock || take > len(b) {
		return nil, ErrCorrupt
	}
	if r.literals = r.literals[:0]; kind == 1 {
		r.literals = repeat(r.literals, b[0], size)
	} else {
		r.literals = append(r.literals, b[:size]...)
	}
	return b[take:], nil
}

// huffmanLiterals reads literals in one stream or four, with a tree of their own or the one before.
func (r *Reader) huffmanLiterals(b []byte, size int, tree, four bool) error {
	if tree {
		n, err := r.huffman.read(b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	if r.huffman.bits == 0 {
		return ErrCorrupt
	}
	r.literals = r.literals[:0]
	if !four {
		return r.stream(b, size)
	}
	if len(b) < 6 || size < 6 {
		return ErrCorrupt
	}
	jumps, part := b[:6], (size+3)/4
	b = b[6:]
	for i := range 3 {
		n := int(little(jumps[2*i : 2*i+2]))
		if n > len(b) {
			return ErrCorrupt
		}
		if err := r.stream(b[:n], part); err != nil {
			return err
		}
		b = b[n:]
	}
	return r.stream(b, size-3*part)
}

// stream decodes so many literals from all bits of a stream.
func (r *Reader) stream(b []byte, size int) error {
	in, ok := readBackwards(b)
	if !ok || size < 0 {
		return ErrCorrupt
	}
	h := &r.huffman
	for range size {
		row := h.rows[in.peek(h.bits)]
		r.literals = append(r.literals, row.symbol)
		if in.n -= int(row.bits); in.n < 0 {
			return ErrCorrupt
		}
	}
	if in.n != 0 {
		return ErrCorrupt
	}
	return nil
}

// read reads the description of a tree and says how many bytes it takes.
func (h *huffman) read(b []byte) (n int, err error) {
	h.bits = 0
	if len(b) == 0 {
		return 0, ErrCorrupt
	}
	var weights [256]uint8
	count := int(b[0]) - 127
	if count > 0 {
		n = 1 + (count+1)/2
		if n > len(b) {
			return 0, ErrCorrupt
		}
		for i := range count {
			weights[i] = b[1+i/2] >> (4 * (1 - i&1)) & 15
		}
	} else {
		if n = 1 + int(b[0]); n > len(b) {
			return 0, ErrCorrupt
		}
		if count, err = readWeights(b[1:n], &weights); err != nil {
			return 0, err
		}
	}
	return n, h.build(&weights, count)
}

// readWeights reads weights that are compressed, by two states in turn.
func readWeights(b []byte, weights *[256]uint8) (count int, err error) {
	var t table
	n, err := t.read(b, 6, 255)
	if err != nil {
		return 0, err
	}
	in, ok := readBackwards(b[n:])
	if !ok {
		return 0, ErrCorrupt
	}
	this, other := in.take(t.bits), in.take(t.bits)
	if in.n < 0 {
		return 0, ErrCorrupt
	}
	for ; count < 254; count++ {
		row := t.rows[this]
		weights[count] = row.symbol
		if in.n < int(row.bits) {
			weights[count+1] = t.rows[other].symbol
			return count + 2, nil
		}
		this, other = other, int(row.base)+in.take(int(row.bits))
	}
	return 0, ErrCorrupt
}

// build makes the rows. The last weight is what is missing to a whole tree.
func (h *huffman) build(weights *[256]uint8, count int) error {
	sum := 0
	for _, w := range weights[:count] {
		if w > maxHuffman {
			return ErrCorrupt
		}
		sum += 1 << w >> 1
	}
	width := bits.Len(uint(sum))
	left := 1<<width - sum
	if sum == 0 || width > maxHuffman || left&(left-1) != 0 || count > 255 {
		return ErrCorrupt
	}
	weights[count] = uint8(bits.Len(uint(left)))
	at := 0
	for w := 1; w <= width; w++ {
		for s, of := range weights[:count+1] {
			if int(of) == w {
				for range 1 << (w - 1) {
					h.rows[at] = huffmanRow{uint8(s), uint8(width + 1 - w)}
					at++
				}
			}
		}
	}
	h.bits = width
	return nil
}
