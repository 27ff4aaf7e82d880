// SPDX-License-Identifier: Apache-2.0

package zstd

import "math/bits"

// A table decodes symbols of finite state entropy: each row is a state.
type table struct {
	bits int // a state's
	rows []row
}

// A row is the symbol of a state, and the next state: base plus so many bits.
type row struct {
	base   uint16
	symbol uint8
	bits   uint8
}

// read reads the description of a table with states of at most maxBits bits and symbols up to maxSymbol, and says how many
// bytes it takes.
func (t *table) read(b []byte, maxBits, maxSymbol int) (n int, err error) {
	in := forwards{b: b}
	t.bits = in.take(4) + 5
	if t.bits > maxBits {
		return 0, ErrCorrupt
	}
	var norm [256]int
	left, threshold, width, symbol := 1<<t.bits+1, 1<<t.bits, t.bits+1, 0
	for left > 1 {
		if symbol > maxSymbol || in.n > len(b)*8 {
			return 0, ErrCorrupt
		}
		p := probability(&in, left, threshold, width)
		norm[symbol] = p
		symbol++
		if left -= max(p, -p); left < 1 {
			return 0, ErrCorrupt
		}
		for zeros := 3; p == 0 && zeros == 3; symbol += zeros {
			if zeros = in.take(2); symbol+zeros > maxSymbol {
				return 0, ErrCorrupt
			}
		}
		for left < threshold {
			threshold >>= 1
			width--
		}
	}
	n = (in.n + 7) / 8
	if left != 1 || n > len(b) {
		return 0, ErrCorrupt
	}
	return n, t.build(norm[:symbol])
}

// probability reads a probability. Small values of those that can still be take a bit less.
func probability(in *forwards, left, threshold, width int) int {
	most := 2*threshold - 1 - left
	p := in.peek(width)
	if low := p & (threshold - 1); low < most {
		in.n += width - 1
		return low - 1
	}
	in.n += width
	if p >= threshold {
		p -= most
	}
	return p - 1
}

// build makes the rows for the probabilities of the symbols; -1 is one that is less than the smallest.
func (t *table) build(norm []int) error {
	size := 1 << t.bits
	if cap(t.rows) < size {
		t.rows = make([]row, size)
	}
	t.rows = t.rows[:size]
	high := size - 1
	var next [256]int
	for s, p := range norm {
		if next[s] = p; p == -1 {
			t.rows[high].symbol = uint8(s)
			high--
			next[s] = 1
		}
	}
	at, step := 0, size>>1+size>>3+3
	for s, p := range norm {
		for range max(p, 0) {
			t.rows[at].symbol = uint8(s)
			for at = (at + step) & (size - 1); at > high; {
				at = (at + step) & (size - 1)
			}
		}
	}
	if at != 0 {
		return ErrCorrupt
	}
	for i := range t.rows {
		r := &t.rows[i]
		x := next[r.symbol]
		next[r.symbol]++
		width := t.bits + 1 - bits.Len(uint(x))
		r.bits, r.base = uint8(width), uint16(x<<width-size)
	}
	return nil
}

// single makes a table of one symbol.
func (t *table) single(symbol byte) {
	t.bits, t.rows = 0, append(t.rows[:0], row{symbol: symbol})
}
