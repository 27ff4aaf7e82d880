// SPDX-License-Identifier: Apache-2.0

package tokens

// tree is a tournament of the joins of two neighbours. A leaf is rank<<posBits | left part, or never; each node above is
// the lesser of its children, so the root is the leftmost join of lowest rank.
type tree struct {
	node [2 * window]uint32
	size uint32 // number of leaves, a power of two; they begin at node[size]
}

// set puts v into the leaf of this part.
func (t *tree) set(part, v uint32) {
	k := (t.size + part) % (2 * window)
	t.node[k] = v
	for k > 1 {
		v = min(v, t.node[k^1])
		k >>= 1
		if t.node[k] == v {
			return
		}
		t.node[k] = v
	}
}

// fill sets all nodes above the leaves.
func (t *tree) fill() {
	for k := t.size - 1; k > 0; k-- {
		t.node[k] = min(t.node[2*k], t.node[2*k+1])
	}
}

// join makes the leaf of the join s[i:j], whose left part is this one.
func (m *merger) join(s string, i, j int32, part uint32) uint32 {
	if r := m.rankOf(s, int(i), int(j)); r != m.view.noRank {
		return r<<posBits | part
	}
	return never
}

// plant makes the tree of the first n parts.
func (m *merger) plant(s string, n int) {
	t := &m.tree
	t.size = 64
	for int(t.size) < n {
		t.size *= 2
	}
	leaves := t.node[t.size : 2*t.size]
	for k := range leaves {
		leaves[k] = never
		if k < n {
			m.next[k], m.prev[k+1] = uint16(k+1), uint16(k)
			if k+1 < n {
				leaves[k] = m.join(s, m.start[k], m.start[k+2], uint32(k))
			}
		}
	}
	t.fill()
}

// mergeTree does the same as mergeSmall in n log n. A joined part keeps the number of its left part.
func (m *merger) mergeTree(s string, n int) int {
	m.plant(s, n)
	t := &m.tree
	parts := n
	for t.node[1] != never {
		left := t.node[1] % window
		right := uint32(m.next[left])
		after := uint32(m.next[right])
		m.next[left] = uint16(after)
		m.prev[after] = uint16(left)
		parts--
		t.set(right, never)
		v := uint32(never)
		if int(after) < n {
			v = m.join(s, m.start[left], m.start[m.next[after]], left)
		}
		t.set(left, v)
		if left > 0 {
			before := uint32(m.prev[left])
			t.set(before, m.join(s, m.start[before], m.start[after], before))
		}
	}
	return parts
}
