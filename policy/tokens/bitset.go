// SPDX-License-Identifier: Apache-2.0

package tokens

// bitset has a bit for each character up to a limit, in two levels of 64.
type bitset struct {
	index  []uint8
	blocks []uint64
}

func (b *bitset) has(r rune) bool {
	row := uint(r) >> 6
	return row < uint(len(b.index)) && b.blocks[b.index[row]]>>(uint(r)&63)&1 != 0
}
