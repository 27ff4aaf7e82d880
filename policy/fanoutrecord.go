// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/binary"
	"unsafe"
)

// A fanoutRecord is an open fan-out as it lies in shared data, for branches that come to other workers than the one that
// reserved. That one keeps it, and takes it out at its end; if it dies, what is left counts as used until it has left the
// windows, and its calls in flight until their lease ends.
type fanoutRecord struct {
	layout  uint32
	steps   uint32
	id      FanoutID
	path    uint64 // hash of the buckets
	expires int64  // ns
	left    Cost   // what no branch has taken
	at      [maxSteps]int64
	spill   [maxSteps]bool
}

// An openFanout is one that this worker reserved.
type openFanout struct {
	id          FanoutID
	reservation Reservation // what the record in shared data had left when it was last looked at
	expires     int64
}

const (
	fanoutLayout = 0x77650f01

	// fanoutSlots is how many fan-outs can be open at once, less those that find their slots taken.
	fanoutSlots = 4096
)

func (f *fanoutRecord) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(f)), unsafe.Sizeof(*f))
}

func fanoutName(id FanoutID, way int) (n name) {
	slot := mix(binary.LittleEndian.Uint64(id[:])+uint64(way)) % fanoutSlots
	n.buf[0], n.n = 'F', 3
	binary.LittleEndian.PutUint16(n.buf[1:], uint16(slot))
	return n
}

func (l *Ledger) getFanout(n *name, f *fanoutRecord) (cas uint32, there bool) {
	value, cas, ok := l.store.Get(n.str())
	if !ok {
		return CreateCAS, false
	}
	if len(value) != len(f.bytes()) {
		return cas, false
	}
	copy(f.bytes(), value)
	return cas, f.layout == fanoutLayout
}

func (l *Ledger) findFanout(id FanoutID, f *fanoutRecord) (n name, cas uint32, found bool) {
	for way := range ways {
		n = fanoutName(id, way)
		if cas, there := l.getFanout(&n, f); there && f.id == id && f.left != (Cost{}) {
			return n, cas, true
		}
	}
	return n, 0, false
}

// publish puts a fan-out into a free slot; false if there is none.
func (l *Ledger) publish(now int64, o *openFanout) bool {
	r := &o.reservation
	f := fanoutRecord{
		layout: fanoutLayout, steps: uint32(r.path.Len), id: o.id, path: r.path.hash(), expires: o.expires, left: r.Cost, at: r.at, spill: r.spill,
	}
	for way := range ways {
		var old fanoutRecord
		n := fanoutName(o.id, way)
		cas, there := l.getFanout(&n, &old)
		if there && now < old.expires+fanoutGrace && old.left != (Cost{}) {
			continue
		}
		if l.store.Set(n.str(), f.bytes(), cas) {
			return true
		}
	}
	return false
}

// fanoutGrace is how long after its end a fan-out's slot is left to the worker that has to take it out.
const fanoutGrace = int64(1e9)
