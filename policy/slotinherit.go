// SPDX-License-Identifier: Apache-2.0

package policy

// A key that has no record where it is looked for begins with what was counted of it elsewhere.

// inherit makes the record of a key that has none where it is looked for. If the key has been counted elsewhere, because no
// slot was free for it or the policy had no name for it, it begins with what was counted there.
func (l *Ledger) inherit(now int64, s *Step, to *loaded) {
	to.init(now, uint64(s.Key), s.Limit)
	if s.Space.Slots == 0 || to.spill {
		return
	}
	p, latest := &l.probed, int64(-1)
	l.eachPlace(s, func() {
		if p.isLive(s.Key) && p.clock > latest {
			latest = p.clock
			to.count(p)
			to.adopt(now, p, &l.spare)
		}
	})
	p.name = s.Space.overflowName(s.Owner)
	if latest < 0 && l.get(p) && p.state == stateLive && !p.idle(max(now, p.clock)) {
		to.count(p)
	}
}

// catchUp is inherit for a record that nobody has used since the policy came into force: the one before may have kept the key
// elsewhere, and what was counted there last includes what was counted here before.
func (l *Ledger) catchUp(now int64, s *Step, to *loaded) {
	l.eachPlace(s, func() {
		if p := &l.probed; p.name != to.name && p.isLive(s.Key) && p.clock > to.clock {
			to.takeOver(p, &l.spare)
			to.adopt(now, p, &l.spare)
		}
	})
}

// eachPlace reads each record that a key may have, into l.probed.
func (l *Ledger) eachPlace(s *Step, f func()) {
	p, space := &l.probed, s.Space
	for _, space.Vouched = range []bool{s.Space.Vouched, !s.Space.Vouched} {
		for w := range ways {
			if p.name = space.slotName(space.way(s.Owner, s.Key, w)); l.get(p) {
				f()
			}
		}
	}
	if p.name = directName(s.Tier, s.Key); l.get(p) {
		f()
	}
}

// takeOver is count for a record that goes on: its own calls in flight stay.
func (r *record) takeOver(o *loaded, spare *record) {
	spare.reset(r.key, len(o.meters), len(r.holders))
	copy(spare.meters, o.meters)
	copy(spare.holders, r.holders)
	spare.state, spare.clock, spare.ownMeters, spare.limit = r.state, o.clock, o.ownMeters, o.limit
	*r, *spare = *spare, *r
	r.strip()
}

// adopt counts the calls in flight that other VMs have said of the record that o has, until their lease ends: they renew it there
// until they meet the key here.
func (r *record) adopt(now int64, o *loaded, spare *record) {
	for _, h := range o.holders {
		if h.expires > now && h.calls > r.callsOf(now, h.vm) {
			r.hold(h.expires-slotLease, h.vm, h.calls, spare)
		}
	}
}

// count makes r have counted what o has.
func (r *record) count(o *loaded) {
	key, holders := r.key, len(r.holders)
	r.reset(key, len(o.meters), holders)
	copy(r.meters, o.meters)
	r.clock, r.ownMeters, r.limit = o.clock, o.ownMeters, o.limit
	r.strip()
}
