// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// A Lot is units of a small quota: lent, and over at the time At at the latest, or used at it.
type Lot struct{ At, Units int64 }

// A LenderState is what the next controller has to know of a [Lender], if it is to lend at once: kept before loans are sent, it says
// no less than what may have been used.
type LenderState struct{ Out, Used []Lot }

// State gives the state at the time now.
func (l *Lender) State(now int64) (s LenderState) {
	l.advance(now)
	for _, e := range l.ends {
		if e.lent && !e.over {
			s.Out = append(s.Out, Lot{e.end, e.units})
		}
	}
	for slot := l.ring.head - l.ring.counts + 1; slot <= l.ring.head && l.ring.on(); slot++ {
		if n := l.ring.slots[max(slot, 0)%l.ring.counts]; n > 0 && slot >= 0 {
			s.Used = append(s.Used, Lot{(slot + 1) * l.ring.width, n})
		}
	}
	return s
}

// Resume makes a new lender go on from a state that an earlier controller has kept. It begins with an empty bucket: nobody has kept
// how full that was.
func (l *Lender) Resume(s LenderState) {
	l.closed, l.level, l.rest = 0, 0, 0
	for i, lot := range s.Out {
		e := &loan{loanKey: loanKey{id: uint64(i)}, units: lot.Units, end: lot.At, lent: true}
		l.loans[e.loanKey] = e
		at, _ := slices.BinarySearchFunc(l.ends, e, func(a, b *loan) int { return cmp.Compare(a.end, b.end) })
		l.ends = slices.Insert(l.ends, at, e)
		l.lent += lot.Units
	}
	for _, lot := range s.Used {
		l.ring.addAt(lot.At, lot.Units)
	}
}

// addAt counts units that were taken at a time that may have passed, or is to come by no more than the clocks of two controllers differ.
func (r *ring) addAt(at, n int64) {
	if !r.on() {
		return
	}
	r.advance(at)
	if slot := at / r.width; slot > r.head-r.counts && slot >= 0 {
		r.slots[slot%r.counts] += n
		r.sum += n
	}
}

// Encode writes the state with its times moved by shift ns, as when they are to be told by another clock.
func (s LenderState) Encode(shift int64) (b []byte) {
	for _, lots := range [][]Lot{s.Out, s.Used} {
		b = binary.AppendUvarint(b, uint64(len(lots)))
		for _, l := range lots {
			b = binary.AppendVarint(binary.AppendVarint(b, l.At+shift), l.Units)
		}
	}
	return b
}

// DecodeLenderState reads what Encode has written.
func DecodeLenderState(b []byte, shift int64) (s LenderState, ok bool) {
	for _, lots := range []*[]Lot{&s.Out, &s.Used} {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)) {
			return LenderState{}, false
		}
		b = b[size:]
		for range n {
			var v [2]int64
			for i := range v {
				if v[i], size = binary.Varint(b); size <= 0 {
					return LenderState{}, false
				}
				b = b[size:]
			}
			if v[1] < 0 || v[1] > maxUnits {
				return LenderState{}, false
			}
			*lots = append(*lots, Lot{v[0] + shift, v[1]})
		}
	}
	return s, len(b) == 0
}
