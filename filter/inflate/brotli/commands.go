// SPDX-License-Identifier: Apache-2.0

package brotli

// lengths of what is inserted and copied: a base and how many bits more, by code.
var (
	insertBase = [24]uint16{0, 1, 2, 3, 4, 5, 6, 8, 10, 14, 18, 26, 34, 50, 66, 98, 130, 194, 322, 578, 1090, 2114, 6210, 22594}
	insertBits = [24]uint8{0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 12, 14, 24}
	copyBase   = [24]uint16{2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 18, 22, 30, 38, 54, 70, 102, 134, 198, 326, 582, 1094, 2118}
	copyBits   = [24]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 24}
)

// cells are the first codes of the 64 commands each: of insertion and of copying, in eighths.
var cells = [11][2]uint8{{0, 0}, {0, 1}, {0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {2, 0}, {1, 2}, {2, 1}, {2, 2}}

const (
	numCommands   = 704
	sameDistance  = 128 // commands below it copy from the last distance
	shortDistance = 16  // codes below it are near the last four distances
)

// command reads what comes next: literals, and then a copy.
func (r *Reader) command() error {
	r.enter(&r.commands)
	c := r.commands.codes[r.commands.current].decode(&r.bits)
	cell := cells[c>>6]
	i, k := int(cell[0])<<3|c>>3&7, int(cell[1])<<3|c&7
	r.insert = int(insertBase[i]) + r.bits.take(int(insertBits[i]))
	r.length = int(copyBase[k]) + r.bits.take(int(copyBits[k]))
	r.same, r.copying = c < sameDistance, true
	if r.insert > r.left {
		return ErrCorrupt
	}
	return r.bits.failed()
}

// literals reads some of those that are to be inserted.
func (r *Reader) literals() error {
	n := min(r.insert, chunk)
	p1, p2 := byte(0), byte(0)
	if k := len(r.out); k >= 2 {
		p1, p2 = r.out[k-1], r.out[k-2]
	} else if k == 1 {
		p1 = r.out[0]
	}
	for range n {
		r.enter(&r.literal)
		t := r.literal.current
		which := r.literal.choice[t<<6|r.modes[t].context(p1, p2)]
		p2, p1 = p1, byte(r.literal.codes[which].decode(&r.bits))
		if r.bits.short {
			break
		}
		r.out = append(r.out, p1)
		r.insert--
		r.left--
		r.total++
	}
	return r.bits.failed()
}

// beginCopy reads where to copy from.
func (r *Reader) beginCopy() error {
	r.copying = false
	symbol := 0
	if !r.same {
		r.enter(&r.distances)
		which := r.distances.choice[r.distances.current<<2|(min(r.length, 5)-2)]
		symbol = r.distances.codes[which].decode(&r.bits)
	}
	distance := r.distance(symbol)
	if err := r.bits.failed(); err != nil {
		return err
	}
	if farthest := min(r.total, r.window); distance > farthest {
		return r.word(distance - farthest - 1)
	}
	if distance <= 0 || distance > len(r.out) || r.length > r.left {
		return ErrCorrupt
	}
	if symbol != 0 {
		copy(r.ring[1:], r.ring[:3])
		r.ring[0] = distance
	}
	r.copy, r.from = r.length, distance
	return nil
}

// distance gives the distance of a symbol.
func (r *Reader) distance(symbol int) int {
	switch {
	case symbol < 4:
		return r.ring[symbol]
	case symbol < shortDistance:
		by := (symbol-4)%6/2 + 1
		if symbol&1 == 0 {
			by = -by
		}
		return r.ring[(symbol-4)/6] + by
	case symbol < shortDistance+r.direct:
		return symbol - shortDistance + 1
	}
	s := symbol - shortDistance - r.direct
	high, low := s>>r.postfix, s&(1<<r.postfix-1)
	width := high>>1 + 1
	offset := (2+high&1)<<width - 4
	return (offset+r.bits.take(width))<<r.postfix + low + r.direct + 1
}

// goOn copies some of what is to be copied.
func (r *Reader) goOn() {
	n := min(r.copy, chunk)
	r.copy, r.left, r.total = r.copy-n, r.left-n, r.total+n
	for at := len(r.out) - r.from; n > 0; { // twice as much each time, for what it copies may be what it has just copied
		k := min(n, len(r.out)-at)
		r.out = append(r.out, r.out[at:at+k]...)
		n -= k
	}
}
