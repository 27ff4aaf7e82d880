// SPDX-License-Identifier: Apache-2.0

package policy

import "unsafe"

// A record is the state of one tier key, as it lies in one value of shared data: a header, the meters, the holders. One
// value holds everything, so that one compare-and-swap takes all dimensions together or none. The value is used in
// place: no field is decoded, and a value is only ever read by the process that wrote it, so byte order does not matter.
type record struct {
	buf []byte
	*header
	meters  []meterState
	holders []holder
}

type header struct {
	layout     uint32 // recordLayout
	state      uint8
	numMeters  uint8
	ownMeters  uint8 // of them, the first ones are those of the limit that was last applied
	numHolders uint8
	key        uint64
	clock      int64  // ns: the time of the last take
	limit      uint64 // what the limit was that was last applied, see [NewLimit]
	gate       Gate   // of a provider's pool
}

// A holder is a VM and how many calls it has in flight. A VM sets its own number and never another's, so a release that
// got lost is put right by the next write; a VM that died stops renewing.
type holder struct {
	vm      uint64
	calls   int64
	expires int64 // ns
}

const (
	recordLayout = 0x77650007 // changes with every change of the structs

	headerSize = int(unsafe.Sizeof(header{}))
	meterSize  = int(unsafe.Sizeof(meterState{}))
	holderSize = int(unsafe.Sizeof(holder{}))

	// slotLease is how long a VM's calls in flight count after it last said so, and a third of it is how often it says so.
	slotLease = int64(15e9)

	// maxClockLead is how far the clock of a record may be ahead of now before it is taken for a clock that went back.
	maxClockLead = int64(1e9)
)

// States of a record, see slots.go.
const (
	stateFree uint8 = iota
	statePending
	stateLive
)

// open sets r to the record in buf; false if it is none of this layout.
func (r *record) open(buf []byte) bool {
	if len(buf) < headerSize {
		return false
	}
	h := (*header)(unsafe.Pointer(unsafe.SliceData(buf)))
	if h.layout != recordLayout || len(buf) != headerSize+int(h.numMeters)*meterSize+int(h.numHolders)*holderSize {
		return false
	}
	r.buf, r.header = buf, h
	r.meters, r.holders = nil, nil
	if h.numMeters > 0 {
		r.meters = unsafe.Slice((*meterState)(unsafe.Pointer(&buf[headerSize])), h.numMeters)
	}
	if h.numHolders > 0 {
		r.holders = unsafe.Slice((*holder)(unsafe.Pointer(&buf[headerSize+int(h.numMeters)*meterSize])), h.numHolders)
	}
	return true
}

// reset makes r a fresh record of the shape. Its buffer is a new one: the one before may be the host's, who takes it back.
func (r *record) reset(key uint64, meters, holders int) {
	size := headerSize + meters*meterSize + holders*holderSize
	buf := make([]byte, size)
	*(*header)(unsafe.Pointer(unsafe.SliceData(buf))) = header{
		layout: recordLayout, numMeters: uint8(meters), numHolders: uint8(holders), key: key,
	}
	r.open(buf)
}

// init makes r the record of a key that has used nothing.
func (r *record) init(now int64, key uint64, l *Limit) {
	holders := 0
	if l.InFlight > 0 {
		holders = 2 // a small Envoy has two workers
	}
	r.reset(key, len(l.Meters), holders)
	for i, m := range l.Meters {
		r.meters[i] = newMeterState(now, m)
	}
	r.ownMeters, r.limit = r.numMeters, l.print
}

// strip takes away what a fleet has granted: another record of the key has it, or may get it.
func (r *record) strip() {
	for i := range r.meters {
		r.meters[i].strip(r.clock)
	}
}

// fit brings r in line with the limit as the policy has it since some time: the limit's meters come first. Meters that the
// limit does not have stay behind them, and are charged like the others, until nobody has asked for them for their window:
// a request that began under another policy, or a stranger in the same overflow record, must not wipe them out. spare is
// memory for the case that the dimensions changed.
func (r *record) fit(now, wall, since int64, l *Limit, spare *record) {
	r.rewind(now)
	if r.limit != l.print || r.ownMeters != r.numMeters {
		r.change(now, since, l, spare)
	}
	if l.rolls {
		for i, m := range l.Meters {
			r.meters[i].roll(now, wall, m)
		}
	}
	if l.shared {
		for i := range l.Meters {
			r.meters[i].lapse(now, r.clock)
		}
	}
}

// change is fit for a record that may have been used under another limit.
func (r *record) change(now, since int64, l *Limit, spare *record) {
	since = max(since, r.clock)
	if !r.hasDimensions(now, l) {
		r.reshape(now, l, spare)
	}
	for i, m := range l.Meters {
		r.meters[i].fit(now, since, m)
	}
	r.ownMeters, r.limit = uint8(len(l.Meters)), l.print
}

// hasDimensions says whether the first meters are those of the limit, and none of the others is over.
func (r *record) hasDimensions(now int64, l *Limit) bool {
	if int(r.ownMeters) != len(l.Meters) {
		return false
	}
	for i := range r.meters {
		m := &r.meters[i]
		if i < len(l.Meters) && m.id&sameMeter != l.Meters[i].id()&sameMeter || i >= len(l.Meters) && !m.asked(now) {
			return false
		}
	}
	return true
}

// reshape puts the meters of the limit first, new ones where there are none, and keeps the others that are still asked for.
func (r *record) reshape(now int64, l *Limit, spare *record) {
	var others [maxMeters]*meterState
	n := 0
	for i := range r.meters {
		m := &r.meters[i]
		if i < int(r.ownMeters) {
			m.seen = r.clock
		}
		if l.meter(m.id) < 0 && m.asked(now) && n < maxMeters-len(l.Meters) {
			others[n] = m
			n++
		}
	}
	spare.reset(r.key, len(l.Meters)+n, len(r.holders))
	spare.state, spare.clock, spare.gate = r.state, r.clock, r.gate
	copy(spare.holders, r.holders)
	for i, m := range l.Meters {
		spare.meters[i] = newMeterState(now, m)
	}
	for i := range r.meters {
		if k := l.meter(r.meters[i].id); k >= 0 {
			spare.meters[k] = r.meters[i]
		}
	}
	for i, m := range others[:n] {
		spare.meters[len(l.Meters)+i] = *m
	}
	*r, *spare = *spare, *r
}

// rewind puts right a record from the future, after the clock went back: the bucket keeps its level, and all that the
// ring counts is taken for admitted now.
func (r *record) rewind(now int64) {
	lead := r.clock - now
	if lead <= maxClockLead {
		return
	}
	for i := range r.meters {
		m := &r.meters[i]
		m.bucket.full -= lead
		m.bucket.n = 0
		m.bucket.note(now, 0)
		m.ring.refit(now, &m.shape, &m.shape)
		m.counter.opened -= lead
		m.counter.closes -= lead
		m.share.lease.Until -= lead
		m.share.lease.FloorUntil -= lead
		if m.share.closed > 0 {
			m.share.closed = max(m.share.closed-lead, 1)
		}
		m.born, m.seen = now, now
	}
	for i := range r.holders {
		r.holders[i].expires -= lead
	}
	r.gate.Until -= lead
	r.clock = now
}

// tick gives the time of a new take: now, or just after the last one, so that no two takes have the same time.
func (r *record) tick(now int64) int64 {
	r.clock = max(now, r.clock+1)
	return r.clock
}

// inFlight is the calls in flight of all VMs but vm.
func (r *record) inFlight(now int64, vm uint64) (n int64) {
	for _, h := range r.holders {
		if h.vm != vm && h.expires > now {
			n += h.calls
		}
	}
	return n
}

// callsOf is the calls in flight of one VM.
func (r *record) callsOf(now int64, vm uint64) int64 {
	for _, h := range r.holders {
		if h.vm == vm && h.expires > now {
			return h.calls
		}
	}
	return 0
}

// hold says that vm has that many calls in flight.
func (r *record) hold(now int64, vm uint64, calls int64, spare *record) {
	free := -1
	for i, h := range r.holders {
		if h.vm == vm {
			free = i
			break
		}
		if free < 0 && (h.expires <= now || h.calls == 0) {
			free = i
		}
	}
	if free < 0 {
		if calls == 0 || len(r.holders) == 255 {
			return
		}
		free = r.grow(spare)
	}
	r.holders[free] = holder{vm: vm, calls: calls, expires: now + slotLease}
}

// grow adds a holder and gives its index.
func (r *record) grow(spare *record) int {
	spare.reset(r.key, len(r.meters), len(r.holders)+1)
	spare.state, spare.clock, spare.ownMeters, spare.limit, spare.gate = r.state, r.clock, r.ownMeters, r.limit, r.gate
	copy(spare.meters, r.meters)
	copy(spare.holders, r.holders)
	*r, *spare = *spare, *r
	return len(r.holders) - 1
}

// idle says whether the record is as good as none: all buckets full, all rings empty, nothing in flight.
func (r *record) idle(now int64) bool {
	for i := range r.meters {
		if !r.meters[i].idle(now) {
			return false
		}
	}
	return r.inFlight(now, 0) == 0
}
