// SPDX-License-Identifier: Apache-2.0

package queue

// blocked is the owners whose own bucket refused in this turn, each with the highest class it refused: its entries of that
// class and below need not be tried, and must not pass those that were. It is a hash table that a new turn empties by
// counting on. Made at the first use: most queues never skip.
type blocked struct {
	turn  uint64
	bits  int
	n     int // in this turn
	slots []blockedSlot
}

type blockedSlot struct {
	owner uint64
	turn  uint64
	class int
}

func (b *blocked) reset() {
	b.turn++
	b.n = 0
}

// find gives the slot of an owner, or the free one where it would be. There are twice as many slots as entries.
func (b *blocked) find(owner uint64) *blockedSlot {
	for i := owner * 0x9e3779b97f4a7c15 >> (64 - b.bits); ; i = (i + 1) & (1<<b.bits - 1) {
		if s := &b.slots[i]; s.turn != b.turn || s.owner == owner {
			return s
		}
	}
}

// add notes that an owner was refused. 0 is nobody, and blocks nobody.
func (b *blocked) add(owner uint64, class int) {
	if owner == 0 || b.n >= 1<<b.bits-1 { // full only if entries came and went within the turn
		return
	}
	if b.slots == nil {
		b.slots = make([]blockedSlot, 1<<b.bits)
	}
	s := b.find(owner)
	if s.turn != b.turn {
		*s = blockedSlot{owner, b.turn, class}
		b.n++
	}
	s.class = min(s.class, class)
}

func (b *blocked) has(owner uint64, class int) bool {
	if owner == 0 || b.slots == nil {
		return false
	}
	s := b.find(owner)
	return s.turn == b.turn && s.class <= class
}
