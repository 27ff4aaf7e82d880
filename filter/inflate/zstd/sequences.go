// SPDX-License-Identifier: Apache-2.0

package zstd

// A code is the smallest value that it stands for, and how many bits are added to it.
type code struct{ base, bits int }

// Kinds of codes, in the order in which their tables come.
const (
	literalLengths = iota
	offsets
	matchLengths
)

// codes of lengths. (That of an offset is its number of bits.)
var codes = [3][]code{
	literalLengths: lengths(0, 16, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16),
	matchLengths:   lengths(3, 32, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16),
}

// lengths lists codes: first n of one value each, and then those with bits, without a gap.
func lengths(base, n int, widths ...int) (list []code) {
	for range n {
		list = append(list, code{base, 0})
		base++
	}
	for _, w := range widths {
		list = append(list, code{base, w})
		base += 1 << w
	}
	return list
}

var limits = [3]struct{ bits, symbol int }{literalLengths: {9, 35}, offsets: {8, 31}, matchLengths: {9, 52}}

// predefined are the tables that need no description.
var predefined = [3]table{
	literalLengths: ready(6, 4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1),
	offsets:        ready(5, 1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1),
	matchLengths: ready(6, 1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1),
}

func ready(bits int, norm ...int) table {
	t := table{bits: bits}
	if err := t.build(norm); err != nil {
		panic(err)
	}
	return t
}

// sequences reads the sequences of a block, each of which copies literals and then something that came before.
func (r *Reader) sequences(b []byte) error {
	count, b, err := sequenceCount(b)
	if err != nil {
		return err
	}
	if count == 0 {
		r.out = append(r.out, r.literals...)
		return nil
	}
	if b, err = r.readTables(b); err != nil {
		return err
	}
	in, ok := readBackwards(b)
	if !ok {
		return ErrCorrupt
	}
	return r.run(&in, count)
}

func sequenceCount(b []byte) (count int, rest []byte, err error) {
	switch {
	case len(b) == 0:
		return 0, nil, ErrCorrupt
	case b[0] == 0:
		if len(b) != 1 {
			return 0, nil, ErrCorrupt
		}
		return 0, nil, nil
	case b[0] < 128:
		return int(b[0]), b[1:], nil
	case b[0] < 255 && len(b) > 1:
		return int(b[0]-128)<<8 + int(b[1]), b[2:], nil
	case b[0] == 255 && len(b) > 2:
		return int(b[1]) + int(b[2])<<8 + 0x7F00, b[3:], nil
	}
	return 0, nil, ErrCorrupt
}

// readTables reads the three tables.
func (r *Reader) readTables(b []byte) (rest []byte, err error) {
	if len(b) == 0 || b[0]&3 != 0 {
		return nil, ErrCorrupt
	}
	modes := b[0]
	b = b[1:]
	for i := range r.tables {
		t, n := &r.tables[i], 0
		switch modes >> (6 - 2*i) & 3 {
		case 0:
			t.bits, t.rows = predefined[i].bits, append(t.rows[:0], predefined[i].rows...)
		case 1:
			if len(b) == 0 || int(b[0]) > limits[i].symbol {
				return nil, ErrCorrupt
			}
			t.single(b[0])
			n = 1
		case 2:
			if n, err = t.read(b, limits[i].bits, limits[i].symbol); err != nil {
				return nil, err
			}
		case 3:
			if len(t.rows) == 0 {
				return nil, ErrCorrupt
			}
		}
		b = b[n:]
	}
	return b, nil
}

// run runs the sequences.
func (r *Reader) run(in *backwards, count int) error {
	var state [3]int
	for i := range state {
		state[i] = in.take(r.tables[i].bits)
	}
	end := len(r.out) + maxBlock
	literals := r.literals
	for k := range count {
		run, match, offset := r.sequence(in, &state, k == count-1)
		if in.n < 0 || run > len(literals) || len(r.out)+run+match > end {
			return ErrCorrupt
		}
		r.out = append(r.out, literals[:run]...)
		literals = literals[run:]
		if offset <= 0 || offset > len(r.out)-r.start || offset > max(r.window, 1<<10) {
			return ErrCorrupt
		}
		r.copy(offset, match)
	}
	if in.n != 0 || len(r.out)+len(literals) > end {
		return ErrCorrupt
	}
	r.out = append(r.out, literals...)
	return nil
}

// sequence reads a sequence: how many literals, how much from before, and how far before.
func (r *Reader) sequence(in *backwards, state *[3]int, last bool) (run, match, offset int) {
	ll, of, ml := r.tables[literalLengths].rows[state[literalLengths]], r.tables[offsets].rows[state[offsets]], r.tables[matchLengths].rows[state[matchLengths]]
	offset = 1<<of.symbol + in.take(int(of.symbol))
	m, l := codes[matchLengths][ml.symbol], codes[literalLengths][ll.symbol]
	match = m.base + in.take(m.bits)
	run = l.base + in.take(l.bits)
	if !last {
		state[literalLengths] = int(ll.base) + in.take(int(ll.bits))
		state[matchLengths] = int(ml.base) + in.take(int(ml.bits))
		state[offsets] = int(of.base) + in.take(int(of.bits))
	}
	return run, match, r.offset(offset, run)
}

// offset is how far back a value points: it may stand for one of the last offsets.
func (r *Reader) offset(value, run int) int {
	if value > 3 {
		r.repeats = [3]int{value - 3, r.repeats[0], r.repeats[1]}
		return value - 3
	}
	if run == 0 {
		value++
	}
	var d int
	switch value {
	case 1:
		return r.repeats[0]
	case 2, 3:
		d = r.repeats[value-1]
	default:
		d = r.repeats[0] - 1
	}
	if value > 2 {
		r.repeats[2] = r.repeats[1]
	}
	r.repeats[1], r.repeats[0] = r.repeats[0], d
	return d
}

// copy repeats what came before; it may overlap with itself.
func (r *Reader) copy(offset, n int) {
	for n > 0 {
		from := len(r.out) - offset
		k := min(n, offset)
		r.out = append(r.out, r.out[from:from+k]...)
		n -= k
	}
}
