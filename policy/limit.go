// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// A Limit is what one key of a tier is held to: any number of meters, and calls in flight. Made by [NewLimit].
type Limit struct {
	Meters   []Meter
	InFlight int64 // calls; 0: no limit
	Mode     Mode
	Scope    Scope

	print    uint64 // tells different meters apart
	relieved bool   // a request tree's that goes on with smaller models when its retries are spent

	entry  Key   // of the policy, see [EntryKey]
	shared bool  // over a fleet, by shares
	floor  Share // of a request tree, that each Envoy has while nobody grants anything

	central      *Limit // as it is where the control plane holds it; nil: here
	centralFloor *Limit // of such a one: what stands in for it

	probed [numDimensions]bool // found by trying, see [Limit.Probed]

	rolls bool // has meters whose windows begin and end by the clock
}

// maxMeters is how many meters a limit may have, and the record of its key.
const maxMeters = 32

// NewLimit makes a limit. The meters must not change afterwards.
func NewLimit(mode Mode, inFlight int64, meters ...Meter) *Limit {
	l := &Limit{Mode: mode, InFlight: inFlight, Meters: meters}
	h := uint64(len(meters))
	for _, m := range meters {
		for _, v := range m.words() {
			h = mix(h ^ v)
		}
		l.rolls = l.rolls || m.counted()
	}
	l.print = max(h, 1)
	return l
}

// share makes the limit one of a fleet's.
func (l *Limit) share(entry Key) {
	meters := slices.Clone(l.Meters)
	for i := range meters {
		meters[i].shared = true
	}
	was := *l
	*l = *NewLimit(l.Mode, l.InFlight, meters...)
	l.Scope, l.relieved, l.floor, l.probed, l.shared, l.entry = was.Scope, was.relieved, was.floor, was.probed, true, entry
}

// Entry names the entry of the policy that the limit comes from.
func (l *Limit) Entry() Key { return l.entry }

// Floor is how much of a meter of the limit an Envoy may use while its controller is away, of what it has been granted nothing of.
func (l *Limit) Floor(m Meter) int64 { return mulDivDown(m.Limit(), int64(l.floor), int64(Whole)) }

// Shared says whether an Envoy has only what it is granted of the limit.
func (l *Limit) Shared() bool { return l.shared }

// meter is the index of the meter that goes on with the state of that id; -1 if there is none.
func (l *Limit) meter(id uint64) int {
	for i := range l.Meters {
		if l.Meters[i].id()&sameMeter == id&sameMeter {
			return i
		}
	}
	return -1
}

// Scale gives the limit for a share of it, each dimension at least one unit.
func (l *Limit) Scale(share Share) *Limit {
	return l.scale(func(n int64) int64 { return max(mulDivDown(n, int64(share), int64(Whole)), 1) })
}

func (l *Limit) scale(part func(int64) int64) *Limit {
	var meters []Meter
	for _, m := range l.Meters {
		m.shape = m.shape.resize(part(m.rate.limit))
		limit := m.shape.limit * m.shape.grain
		m.rate = newRate(limit, m.rate.window, min(max(part(m.rate.burst), 1), limit))
		meters = append(meters, m)
	}
	inFlight := l.InFlight
	if inFlight > 0 {
		inFlight = part(inFlight)
	}
	scaled := NewLimit(l.Mode, inFlight, meters...)
	scaled.Scope, scaled.shared = l.Scope, l.shared
	return scaled
}
