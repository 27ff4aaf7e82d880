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
	legs    uint32
	id      FanoutID
	owner   FanoutOwner
	expires int64 // ns
	moved   int64 // ns: as of when it counts
	moving  int64 // 1: the worker that reserved it is about to change that
	leg     [MaxLegs]legRecord
}

// A legRecord is what no branch has taken of a leg.
type legRecord struct {
	path  uint64 // hash of the buckets
	steps int64
	left  Cost
	at    [maxSteps]int64
	spill [maxSteps]bool
}

// An openFanout is one that this worker reserved.
type openFanout struct {
	id      FanoutID
	tenant  Key
	name    name
	legs    []Reservation // what the record in shared data had left when it was last looked at
	expires int64
	moved   int64
}

const (
	fanoutLayout = 0x77650f03

	// fanoutSlots is how many fan-outs can be open at once, less those that find their slots taken; fanoutWays in how many of
	// them those of one owner may be.
	fanoutSlots = 4096
	fanoutWays  = 16

	// MaxPerTree bounds the fan-outs that one owner may have open.
	MaxPerTree = fanoutWays / 2

	// fanoutGrace is how long after its end a fan-out's slot is left to the worker that has to take it out.
	fanoutGrace = int64(5e9)
)

func (f *fanoutRecord) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(f)), unsafe.Sizeof(*f))
}

// left is what no branch has taken of all legs.
func (f *fanoutRecord) left() (c Cost) {
	for i := range f.leg[:min(f.legs, MaxLegs)] {
		c = c.Plus(f.leg[i].left)
	}
	return c
}

// legFor is a leg with these buckets that has so much left; nil if there is none.
func (f *fanoutRecord) legFor(path *Path, cost *Cost) *legRecord {
	hash, steps := path.counted()
	for i := range f.leg[:min(f.legs, MaxLegs)] {
		if g := &f.leg[i]; g.path == hash && g.steps == steps && cost.Requests > 0 && g.left.Covers(*cost) {
			return g
		}
	}
	return nil
}

// counted is a hash of the buckets in which something counts, and how many there are. A pool without a limit is on a path only while
// its provider has closed it, and then the last.
func (p *Path) counted() (hash uint64, n int64) {
	for i := range p.Len {
		if s := &p.Steps[i]; len(s.Limit.Meters) > 0 || s.Limit.InFlight > 0 {
			hash = mix(hash ^ uint64(s.Key))
			n++
		}
	}
	return hash, n
}

// fanoutName is one of the slots in which an owner's fan-outs may be, no two of them the same.
func fanoutName(owner FanoutOwner, way int) (n name) {
	slot := (mix(uint64(owner.Tree)) + uint64(way)) % fanoutSlots
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

func (l *Ledger) findFanout(id FanoutID, owner FanoutOwner, f *fanoutRecord) (n name, cas uint32, found bool) {
	for way := range fanoutWays {
		n = fanoutName(owner, way)
		if cas, there := l.getFanout(&n, f); there && f.id == id && f.owner == owner && f.left() != (Cost{}) {
			return n, cas, true
		}
	}
	return n, 0, false
}

// openOf is how many fan-outs an owner has open.
func (l *Ledger) openOf(now int64, owner FanoutOwner) (open int) {
	var f fanoutRecord
	for way := range fanoutWays {
		n := fanoutName(owner, way)
		if _, there := l.getFanout(&n, &f); there && f.owner == owner && now < f.expires && f.left().Requests > 0 {
			open++
		}
	}
	return open
}

// publish puts a fan-out into a free slot; false if there is none, or if the owner has more open than it may with it. Of two
// workers that publish at once at least one sees the other's.
func (l *Ledger) publish(now int64, owner FanoutOwner, o *openFanout, perTree int) bool {
	f := fanoutRecord{layout: fanoutLayout, legs: uint32(len(o.legs)), id: o.id, owner: owner, expires: o.expires, moved: o.moved}
	for i := range o.legs {
		r := &o.legs[i]
		f.leg[i] = legRecord{left: r.Cost, at: r.at, spill: r.spill}
		f.leg[i].path, f.leg[i].steps = r.path.counted()
	}
	for way := range fanoutWays {
		var old fanoutRecord
		n := fanoutName(owner, way)
		cas, there := l.getFanout(&n, &old)
		if there && now < old.expires+fanoutGrace && old.left() != (Cost{}) || !l.store.Set(n.str(), f.bytes(), cas) {
			continue
		}
		if l.openOf(now, owner) <= perTree {
			o.name = n
			return true
		}
		l.withdraw(n, o)
		return false
	}
	return false
}

// withdraw takes a fan-out out of its slot again, of which nobody else knows.
func (l *Ledger) withdraw(n name, o *openFanout) {
	var f fanoutRecord
	if cas, there := l.getFanout(&n, &f); there && f.id == o.id {
		f = fanoutRecord{layout: fanoutLayout}
		l.store.Set(n.str(), f.bytes(), cas)
	}
}
