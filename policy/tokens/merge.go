// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"math/bits"
	"unsafe"
)

const (
	small   = 63   // so many parts at most are merged with a bit for each, more in a tree
	window  = 2048 // bytes: a longer piece is merged window by window
	posBits = 11   // 1<<posBits == window
)

// merger has the space for a merge: a piece is cut into parts, and neighbours are joined, those first whose join has the
// lowest rank, the leftmost of them first, until no join is a token. The parts left are the tokens.
type merger struct {
	view       view
	start      [window + 1]int32  // where the first parts begin, and behind them the end
	next, prev [window + 1]uint16 // of a part in the tree, by the number of its first part
	joins      [small + 1]uint64  // of two neighbours, where there are few
	tree       tree
	pad        [window + 8]byte // the last piece of a text
}

// merged counts the tokens of s[i:j], or guesses them if too much of the text was merged already.
func (c *Counter) merged(s string, i, j int) (n int) {
	if c.work.bytes >= workMost {
		return c.byLength(j - i)
	}
	rest := 0
	if most := i + workMost - c.work.bytes; j > most && j-i > window {
		rest, j = j-most, most
	}
	if j-i > window {
		n = c.mergeLong(s, i, j, leastMargin)
	} else {
		n = c.merge(s, i, j)
	}
	c.done(j-i, n)
	if rest > 0 {
		n += c.byLength(rest)
	}
	return n
}

// merge counts the tokens of s[i:j], up to window bytes.
func (m *merger) merge(s string, i, j int) int {
	s, i, j = m.padded(s, i, j)
	n := m.split(s, i, j)
	if n <= small {
		return m.mergeSmall(s, n)
	}
	return m.mergeTree(s, n)
}

// padded copies s[i:j] if loads of 8 bytes would reach beyond the end of s.
func (m *merger) padded(s string, i, j int) (string, int, int) {
	if j+8 <= len(s) {
		return s, i, j
	}
	n := copy(m.pad[:window], s[i:j])
	return unsafe.String(&m.pad[0], len(m.pad)), 0, n
}

// rankOf looks s[i:j] up; j+8 <= len(s).
func (m *merger) rankOf(s string, i, j int) uint32 {
	n := uint(j - i)
	if n > 8 {
		return m.rankLong(s, i, j)
	}
	h := hashShort(first(load8(s, i), n), n)
	return m.view.rankIn(m.view.entry(h), h)
}

func (m *merger) rankLong(s string, i, j int) uint32 {
	if j-i > m.view.longest() {
		return m.view.noRank
	}
	h := hashLong(s, i, j)
	return m.view.rankIn(m.view.entry(h), h)
}

// mergeSmall merges the first n parts as one writes it down. A join is its rank above the number of its left part, so that
// the least is the leftmost of lowest rank. Parts keep their numbers: alive has those that were not joined to the one before,
// and the end. Calls and branches are few, as in WebAssembly they cost most.
func (m *merger) mergeSmall(s string, n int) int {
	start, joins, none := &m.start, &m.joins, uint64(m.view.noRank)<<posBits
	m.firstJoins(s, n)
	alive := uint64(2)<<n - 1
	for parts := n; ; parts-- {
		best := none
		for k := 0; k < n; k += 8 {
			j := (*[8]uint64)(joins[k:])
			best = lesser(best, lesser(lesser(lesser(j[0], j[1]), lesser(j[2], j[3])), lesser(lesser(j[4], j[5]), lesser(j[6], j[7]))))
		}
		if best == none {
			return parts
		}
		left := uint(best) % window
		right := behind(alive, left)
		alive &^= 1 << right
		joins[right] = none
		before := alive & (1<<left - 1)
		for k := left; ; k = uint(bits.Len64(before) - 1) { // the joins of this part with those behind and before it
			joins[k] = none
			mid := behind(alive, k)
			if i, j := int(start[k]), int(start[behind(alive, mid)%(small+1)]); mid < uint(n) && j-i <= m.view.longest() {
				h := uint64(0)
				if size := uint(j - i); size <= 8 {
					h = hashShort(first(load8(s, i), size), size)
				} else {
					h = hashLong(s, i, j)
				}
				joins[k] = uint64(m.view.rankIn(m.view.entry(h), h))<<posBits | uint64(k)
			}
			if k < left || before == 0 {
				break
			}
		}
	}
}

// firstJoins looks up the joins of the first n parts, which are characters: two of them are 8 bytes at the most. Behind them it
// fills joins up to a multiple of 8.
func (m *merger) firstJoins(s string, n int) {
	for k := range n - 1 {
		i := int(m.start[k])
		size := uint(int(m.start[k+2]) - i)
		h := hashShort(first(load8(s, i), size), size)
		m.joins[k] = uint64(m.view.rankIn(m.view.entry(h), h))<<posBits | uint64(k)
	}
	for k := n - 1; k < (n+7)&^7; k++ {
		m.joins[k] = uint64(m.view.noRank) << posBits
	}
}

// behind gives the first bit of set above this one.
func behind(set uint64, bit uint) uint { return uint(bits.TrailingZeros64(set &^ (2<<bit - 1))) }
