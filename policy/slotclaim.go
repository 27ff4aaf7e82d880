// SPDX-License-Identifier: Apache-2.0

package policy

// A record becomes live by a claim to its slot; see slots.go for why there is never a second one.

// put writes a record that load gave and the caller changed; false if somebody else was faster.
func (l *Ledger) put(now int64, s *Step, to *loaded) bool {
	if to.fresh && !s.Space.direct() && !to.spill {
		if !l.claim(now, s, to) {
			return false
		}
	}
	to.state, to.key = stateLive, uint64(s.Key)
	return l.store.Set(to.name.str(), to.buf, to.cas)
}

// claim makes sure that to.name holds a pending record of the step and that the key has no other record; to.cas is then the
// version from which it may be made live. The version is read before the other slots are: whoever makes a rival live in
// between must have taken this pending record out, and the version is no longer right.
func (l *Ledger) claim(now int64, s *Step, to *loaded) bool {
	p := &l.probed
	p.name = to.name
	if there := l.get(p); !there || !p.isPending(s.Key) {
		if there && (p.cas != to.cas || !p.mayTake(now)) {
			return false
		}
		l.spare.reset(uint64(s.Key), 0, 0)
		l.spare.state, l.spare.clock = statePending, now
		if !l.store.Set(to.name.str(), l.spare.buf, to.cas) || !l.get(p) || !p.isPending(s.Key) {
			return false
		}
	}
	to.cas = p.cas
	for w := range ways {
		p.name = s.Space.slotName(s.Space.way(s.Owner, s.Key, w))
		if p.name != to.name && !l.clearRival(s, to, p) {
			return false
		}
	}
	return true
}

// clearRival takes a pending record of the same key out of p.name. If there is a live one, it takes out our own instead.
func (l *Ledger) clearRival(s *Step, to, p *loaded) bool {
	if !l.get(p) || p.key != uint64(s.Key) || p.state == stateFree {
		return true
	}
	l.spare.reset(0, 0, 0)
	if p.isLive(s.Key) {
		l.store.Set(to.name.str(), l.spare.buf, to.cas)
		return false
	}
	return l.store.Set(p.name.str(), l.spare.buf, p.cas)
}
