// SPDX-License-Identifier: Apache-2.0

package tokens

// seam is where one window ends and the next begins: at the start of a token.
type seam struct {
	from  int // where the next window begins
	want  int // the length of its first token, as the window before saw it; 0: not known
	total int // tokens before it
}

// leastMargin is far above what is needed: of random text, 8 bytes were too narrow in one window of 300, 16 never.
const leastMargin = window / 8

// mergeLong merges window by window, so that a long piece costs no more for each byte than a short one. A row of tokens
// is what the merge gives if and only if each two neighbours are what it gives for their own bytes. So two windows may be
// joined between two tokens that were neighbours in the first of them, if the second begins with the same token. The
// margin is what of a window is taken for disturbed by its end; if it was too narrow an earlier seam is taken.
func (m *merger) mergeLong(s string, i, j, least int) int {
	now, before := seam{from: i}, seam{}
	for margin := least; ; {
		to := min(now.from+window, j)
		parts := m.mergeWindow(s, now.from, to)
		if now.want != 0 && m.tokenLen(0) != now.want && margin < window/2 {
			margin *= 2
			now = before
			now.want = 0
			continue
		}
		if to == j {
			return now.total + parts
		}
		next := m.seamAfter(now, window-margin)
		if now.want != 0 {
			margin = least
		}
		before, now = now, next
	}
}

// mergeWindow is merge, but leaves the tokens in m.start and m.next.
func (m *merger) mergeWindow(s string, i, j int) int {
	s, i, j = m.padded(s, i, j)
	return m.mergeTree(s, m.split(s, i, j))
}

// seamAfter gives the last seam in the window just merged that leaves no more than reach bytes before it.
func (m *merger) seamAfter(s seam, reach int) seam {
	k, end := 0, m.tokenLen(0)
	for end <= reach {
		k = int(m.next[k])
		s.total++
		end += m.tokenLen(k)
	}
	s.want = m.tokenLen(k)
	s.from += end - s.want
	return s
}

// tokenLen gives the length of the token that begins with first part k.
func (m *merger) tokenLen(k int) int {
	return int(m.start[m.next[k]] - m.start[k])
}
