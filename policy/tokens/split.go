// SPDX-License-Identifier: Apache-2.0

package tokens

// never is a rank above all others.
const never = 1<<32 - 1

// split writes the first parts of s[i:j] to m.start, the end behind them, and says how many they are. By the definition
// a part is a byte. A character is taken whole if its rank is lower than that of any token that could keep its bytes from
// being joined before all else (those that cross its borders with a part of it only): that saves most merges of Chinese.
func (m *merger) split(s string, i, j int) int {
	n := 0
	left := uint32(never) // the lowest rank of what crosses the border before k
	for k := i; k < j; {
		b := s[k]
		m.start[n] = int32(k)
		n++
		k++
		switch {
		case b < 0x80:
			left = never
			if k < j && s[k] >= 0x80 {
				left = m.view.borderRank(b, s[k])
			}
			continue
		case b < 0xC0: // the window of a long piece may begin inside a character
			left = 0
			continue
		}
		end := k - 1 + charLen(b)
		right := uint32(never)
		if end < j {
			right = m.view.borderRank(s[end-1], s[end])
		}
		if end <= j {
			if r := m.rankOf(s, k-1, end); r != m.view.noRank && r < left && r < right {
				k = end
			}
		}
		for ; k < end && k < j; k++ {
			m.start[n] = int32(k)
			n++
		}
		left = right
	}
	m.start[n] = int32(j)
	return n
}

// charLen gives the length of a character beyond ASCII by its first byte.
func charLen(b byte) int {
	if b < 0xE0 {
		return 2
	}
	if b < 0xF0 {
		return 3
	}
	return 4
}
