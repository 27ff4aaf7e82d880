// SPDX-License-Identifier: Apache-2.0

package tokens

import "unsafe"

const (
	small   = 32   // so many parts at most are merged in a plain array, more in a tree
	window  = 2048 // bytes: a longer piece is merged window by window
	posBits = 11   // 1<<posBits == window
)

// merger has the space for a merge: a piece is cut into parts, and neighbours are joined, those first whose join has the
// lowest rank, the leftmost of them first, until no join is a token. The parts left are the tokens.
type merger struct {
	view       view
	start      [window + 1]int32  // where the first parts begin, and behind them the end
	next, prev [window + 1]uint16 // of a part in the tree, by the number of its first part
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
	h := hash(s, i, j)
	return m.view.rankIn(m.view.entry(h), h)
}

// mergeSmall merges the first n parts as one writes it down. It moves m.start.
func (m *merger) mergeSmall(s string, n int) int {
	start, none := m.start[:small+2], m.view.noRank
	var joins [small + 2]uint32 // the rank of parts k and k+1 joined; part k is start[k]:start[k+1]
	for k := range n - 1 {
		joins[k] = m.rankOf(s, int(start[k]), int(start[k+2]))
	}
	joins[n-1] = none
	for n > 1 {
		best, at := none, 0
		for k, r := range joins[:n] {
			if r < best {
				best, at = r, k
			}
		}
		if best == none {
			break
		}
		n--
		for k := at + 1; k <= n; k++ {
			start[k], joins[k-1] = start[k+1], joins[k]
		}
		joins[n] = none
		if at > 0 {
			joins[at-1] = m.rankOf(s, int(start[at-1]), int(start[at+1]))
		}
		if at < n-1 {
			joins[at] = m.rankOf(s, int(start[at]), int(start[at+2]))
		}
	}
	return n
}
