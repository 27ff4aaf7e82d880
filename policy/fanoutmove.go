// SPDX-License-Identifier: Apache-2.0

package policy

// What is reserved for branches is held until they come. In a window it must count as of now all the time: else it would have left
// the window when they come, and others would have used the room. So the worker that reserved it moves it along, and a branch moves
// its part to the moment at which it is sent.

const (
	// moveEvery is how often, in ns, what is held moves. Buckets forgive as much: it is the jitter that they allow for.
	moveEvery = int64(100e6)

	// moveGrace is how long ago it may have moved for a branch to take its part. Then the worker that reserved it is dead.
	moveGrace = int64(500e6)

	// joinTries bounds how long a branch waits for a move, in accesses to the record.
	joinTries = 1024
)

// moveFanout makes all that is held count as of now. No branch takes its part meanwhile.
func (l *Ledger) moveFanout(now int64, o *openFanout, f *fanoutRecord, cas uint32) {
	f.moving = 1
	if !l.store.Set(o.name.str(), f.bytes(), cas) {
		return // a branch came just now
	}
	for n := range o.legs {
		held := &o.legs[n]
		for i := range held.path.Len {
			held.at[i] = l.move(now, &held.path.Steps[i], held.spill[i], held.at[i], &held.Cost)
		}
		f.leg[n].at = held.at
	}
	var old fanoutRecord
	cas, _ = l.getFanout(&o.name, &old)
	o.moved, f.moved, f.moving = now, now, 0
	l.store.Set(o.name.str(), f.bytes(), cas)
}

// move makes what was taken from a bucket at one time count as of now, and gives the time at which it does.
func (l *Ledger) move(now int64, s *Step, spill bool, at int64, cost *Cost) int64 {
	r, p := &l.loads[0], settlement{step: *s, spill: spill, at: at, was: *cost}
	for range settleTries {
		if !spill {
			l.load(now, s, r)
		}
		if spill && !l.reload(now, &p, r) || spill != r.spill {
			return at // the bucket is not where it was
		}
		if !r.fresh {
			r.settle(max(now, r.clock), &p)
		}
		to := r.take(now, cost)
		if s.Limit.InFlight > 0 {
			r.hold(now, l.vm, l.heldOf(s, spill).inFlight(), &l.spare)
		}
		if l.put(now, s, r) {
			return to
		}
	}
	return at
}

// JoinFanout takes the part of one branch from an open fan-out; false if it is not open any more, was reserved for another
// caller or other buckets, or has not so much left, or a provider has closed its pool: then the branch is a call like any other.
func (l *Ledger) JoinFanout(now int64, id FanoutID, owner FanoutOwner, path *Path, cost Cost, res *Reservation) bool {
	if l.shut(now, path) {
		return false
	}
	var f fanoutRecord
	for range joinTries {
		name, cas, found := l.findFanout(id, owner, &f)
		if !found || now >= f.expires || now-f.moved > moveGrace {
			return false
		}
		if f.moving != 0 {
			continue
		}
		g := f.legFor(path, &cost)
		if g == nil {
			return false
		}
		g.left = g.left.Minus(cost)
		if !l.store.Set(name.str(), f.bytes(), cas) {
			continue
		}
		*res = Reservation{Cost: cost, path: *path, at: g.at, spill: g.spill}
		res.path.Part = nil // what is reserved is no part of a class's share
		for i := range path.Len {
			s := &path.Steps[i]
			if s.Limit.InFlight > 0 {
				l.addCalls(l.heldOf(s, g.spill[i]), s, g.spill[i], cost.Requests)
			}
			res.at[i] = l.move(now, s, g.spill[i], g.at[i], &cost)
		}
		return true
	}
	return false
}

// shut says whether a provider has closed a pool of the path.
func (l *Ledger) shut(now int64, path *Path) bool {
	r := &l.loads[0]
	for i := range path.Len {
		if s := &path.Steps[i]; s.Tier == TierProvider {
			if l.load(now, s, r); r.gate.Until > now {
				return true
			}
		}
	}
	return false
}
