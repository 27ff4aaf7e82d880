// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/binary"
	"unsafe"
)

// Shared data has no delete, so the records of tiers whose keys come from requests live in a fixed number of slots. A
// record carries its key; one that is idle is the same as none, and its slot may be taken over.
//
// A key must never have two live records. So a record is first put into a slot as pending, without any use; then the
// key's other slots are read, a pending rival is taken out and a live one preferred; only a compare-and-swap from the
// unchanged pending record makes it live, together with its first take. Of two that try, at least the later one reads the
// other's record. RATIONALE.md, "Why are new buckets pending first?", has the argument; slots_test.go all interleavings.

// A Space is where the records of a tier live. Keys that the policy names have a record each. The others share slots, and
// those of tenants that somebody vouches for have slots apart from those of tenants that anybody can make up: a flood of
// invented credentials must not push them out.
type Space struct {
	Tier    Tier
	Slots   uint32 // a power of two, at least MinSlots; 0: the tier has none
	Named   bool   // the policy names the key
	Vouched bool   // the policy or a certificate names the tenant
}

func (s *Space) direct() bool { return s.Named || s.Slots == 0 }

// MinSlots is the smallest number of slots of a tier.
const MinSlots = 64

const (
	ways = 4 // slots that a key may be in

	// columns is how many parts a tier's slots have for each owner: an owner's keys use one of them in each row, so that
	// one tenant with random user names fills at most an eighth, and hits all four slots of another tenant's key once in
	// 8^4.
	columns = 8

	overflowSlots = 256
)

// A name is the key of a record in the store.
type name struct {
	buf [9]byte
	n   uint8
}

// str is valid while the name is.
func (n *name) str() string { return unsafe.String(&n.buf[0], int(n.n)) }

func directName(t Tier, k Key) (n name) {
	n.buf[0], n.n = 'A'+byte(t), 9
	binary.LittleEndian.PutUint64(n.buf[1:], uint64(k))
	return n
}

func (s *Space) slotName(slot uint32) (n name) {
	n.buf[0], n.n = s.letter(), 5
	binary.LittleEndian.PutUint32(n.buf[1:], slot)
	return n
}

func (s *Space) letter() byte {
	if s.Vouched {
		return 'n' + byte(s.Tier)
	}
	return 'a' + byte(s.Tier)
}

// overflowName is where the keys of an owner go for which no slot is free: they share one record.
func (s *Space) overflowName(owner Key) (n name) {
	n.buf[0], n.n = s.letter(), 2
	n.buf[1] = byte(mix(uint64(owner)) % overflowSlots)
	return n
}

// way gives the w-th slot of a key.
func (s *Space) way(owner, key Key, w int) uint32 {
	rows := uint64(s.Slots / columns)
	row := mix(uint64(key)+uint64(w)*0x9e3779b97f4a7c15) % rows
	column := mix(uint64(owner)^row<<32) % columns
	return uint32(row*columns + column)
}

// A loaded record is one that was read to be used.
type loaded struct {
	record
	name  name
	cas   uint32
	fresh bool // not live yet
	spill bool // the overflow record
	held  *held
}

// load reads the record of a step for use at the time now, fitted to the step's limit. A key without a record gets a fresh
// one, which store makes live.
func (l *Ledger) load(now int64, s *Step, to *loaded) {
	to.fresh = !l.find(now, s, to)
	to.held = l.heldOf(s, to.spill)
	switch {
	case to.fresh:
		l.inherit(now, s, to)
	case to.clock < s.Since && s.Space.Slots > 0 && !to.spill:
		l.catchUp(now, s, to)
	}
	to.fit(now, l.wall, s.Since, l.cut(s.Limit, to.gate.Rate), &l.spare)
}

// find reads the record of a step, if there is one. If not, to.name is where one may be made, with to.cas.
func (l *Ledger) find(now int64, s *Step, to *loaded) bool {
	to.spill = false
	if s.Space.direct() {
		to.name, to.cas = directName(s.Tier, s.Key), CreateCAS
		return l.get(to)
	}
	hint := &l.hints[uint64(s.Key)%uint64(len(l.hints))]
	if hint.key == s.Key {
		to.name = s.Space.slotName(hint.slot)
		if l.get(to) && to.isLive(s.Key) {
			return true
		}
	}
	found, best := l.probe(now, s, to)
	if !found && best.n == 0 { // no slot is free
		to.name, to.cas, to.spill = s.Space.overflowName(s.Owner), CreateCAS, true
		return l.get(to)
	}
	if found {
		*hint = slotHint{s.Key, binary.LittleEndian.Uint32(to.name.buf[1:])}
		return true
	}
	to.name = best
	to.cas = CreateCAS
	l.get(to)
	return false
}

// probe reads the key's slots for its live record. If there is none, it gives the best slot for a new one: where it is
// pending already, or the first that may be taken.
func (l *Ledger) probe(now int64, s *Step, to *loaded) (found bool, best name) {
	for w := range ways {
		to.name = s.Space.slotName(s.Space.way(s.Owner, s.Key, w))
		there := l.get(to)
		switch {
		case there && to.isLive(s.Key):
			return true, to.name
		case there && to.isPending(s.Key):
			best = to.name
		case best.n == 0 && (!there || to.mayTake(now)):
			best = to.name
		}
	}
	return false, best
}

func (r *record) isLive(k Key) bool { return r.state == stateLive && r.key == uint64(k) }

func (r *record) isPending(k Key) bool { return r.state == statePending && r.key == uint64(k) }

// mayTake says whether another key may have the slot. A pending record is left alone for a moment.
func (r *record) mayTake(now int64) bool {
	const pendingPatience = int64(1e9)
	switch r.state {
	case stateFree:
		return true
	case statePending:
		return now-r.clock > pendingPatience
	}
	return r.idle(max(now, r.clock))
}

// get reads to.name into to. A value that is no record counts as a free one.
func (l *Ledger) get(to *loaded) bool {
	value, cas, ok := l.store.Get(to.name.str())
	if !ok {
		return false
	}
	to.cas = cas
	if !to.open(value) {
		to.reset(0, 0, 0)
	}
	return true
}
