// SPDX-License-Identifier: Apache-2.0

package policy

// What a fleet's controller has given to this Envoy lies in the records of its buckets. Here is what whoever talks to the controller
// needs of them.

// SharedKey is what a fleet knows the key of a step by. overflow: for the record that it shares with others where no slot is free.
func (s *Step) SharedKey(overflow bool) Key { return Key(keyOf(s, overflow)) }

// A Lack is what a call was refused for that only the controller can give.
type Lack struct {
	Step  Step
	Meter uint64 // its [Meter.ID]
	Units int64
}

// Lacks are those of the last Reserve. They are valid until the next.
func (l *Ledger) Lacks() []Lack { return l.lacks }

func (l *Ledger) noteLack(now int64, s *Step, m *meterState, cost *Cost) {
	n := cost.In(m.unit())
	if _, lacks := m.shareWait(now, n); lacks && m.share.dry <= now && len(l.lacks) < maxMeters {
		l.lacks = append(l.lacks, Lack{*s, m.id & sameMeter, n})
	}
}

// A SharedMeter is what this Envoy has of a meter that a fleet shares. It is valid within [Ledger.Shared].
type SharedMeter struct {
	Meter Meter // as the policy has it

	state *meterState
	clock int64
}

// Shared has f look at the meters of a step that a fleet shares, at the time now, until it returns true for none: then nothing is
// written. It may be called again, if others were faster; what it changes it must change by the meter as it finds it. overflow says
// that the key shares its record with others. false: others were faster each time.
func (l *Ledger) Shared(now int64, s *Step, f func(m *SharedMeter, overflow bool) (changed bool)) bool {
	r := &l.loads[0]
	for range settleTries {
		l.load(now, s, r)
		changed := false
		for i := range s.Limit.Meters {
			m := SharedMeter{s.Limit.Meters[i], &r.meters[i], r.clock}
			changed = f(&m, r.spill) || changed
		}
		if !changed || l.put(now, s, r) {
			return true
		}
	}
	return false
}

// Lease is what is held of the meter.
func (m *SharedMeter) Lease() Lease { return m.state.share.lease }

// Put puts a lease in force, with tokens that come along, and gives what of them and of the level did not fit: see
// [Lease.Returned].
func (m *SharedMeter) Put(at int64, to Lease, tokens int64) (returned int64) {
	h := &m.state.share
	if was := &h.lease; h.mode == rated && (was.Epoch > to.Epoch || was.Epoch == to.Epoch && was.Version > to.Version) {
		return tokens // from one who has lost the right to say so, and does not know it yet
	}
	h.mode, h.lease = rated, to
	returned = m.state.setTerms(max(at, m.clock), m.clock, tokens)
	h.lease.Returned += returned
	return returned
}

// Remembered is how many units the ring counts.
func (m *SharedMeter) Remembered(now int64) int64 {
	if !m.state.ringed() {
		return 0
	}
	return m.state.counts(now)
}

// Counted is how many units count in the window, if there is anything that counts them.
func (m *SharedMeter) Counted(now int64) (n int64, counts bool) {
	return m.state.counts(max(now, m.clock)), m.state.ringed() || m.state.counted()
}

// Spent is how many units were ever taken.
func (m *SharedMeter) Spent() int64 { return m.state.share.spent }

// Lend makes the meter one of which units are lent for single calls: more of them, to be used until then. first: it has been another
// so far, and counts anew what is used.
func (m *SharedMeter) Lend(units, until int64) (first bool) {
	h := &m.state.share
	if first = h.mode != lent; first {
		if h.closed == 0 {
			m.state.close(m.clock, 0)
		}
		*h = share{mode: lent, whole: h.whole, closed: h.closed, spent: h.spent}
		m.state.shape.limit = 0
	}
	h.given += units
	h.lease.Until = until
	return first
}

// Recall takes back units that were lent and are not used, up to n.
func (m *SharedMeter) Recall(n int64) (units int64) {
	h := &m.state.share
	if h.mode != lent {
		return 0
	}
	units = min(max(h.given-h.used-h.lease.Returned, 0), n)
	h.lease.Returned += units
	return units
}

// Lent says whether units of the meter are lent for single calls.
func (m *SharedMeter) Lent() bool { return m.state.share.mode == lent }

// Used is how many units that were given have been used, and Given how many were, both in sum.
func (m *SharedMeter) Used() int64  { return m.state.share.used }
func (m *SharedMeter) Given() int64 { return m.state.share.given }

// Returned is how many went back.
func (m *SharedMeter) Returned() int64 { return m.state.share.lease.Returned }

// Have is what is left of what was given.
func (m *SharedMeter) Have(now int64) int64 { return m.state.share.have(now) }

// Draw raises what was given of a stock, to be used until then. dry: until when it is known that there is no more.
func (m *SharedMeter) Draw(given, until, dry int64) {
	h := &m.state.share
	h.given, h.lease.Until, h.dry = max(h.given, given), max(h.lease.Until, until), dry
}

// GiveBack returns what is left of a stock when its time is over.
func (m *SharedMeter) GiveBack(now int64) (changed bool) {
	h := &m.state.share
	left := h.given - h.used - h.lease.Returned
	if now < h.lease.Until || left <= 0 {
		return false
	}
	h.lease.Returned += left
	return true
}

// Drawn says whether the meter does not refill.
func (m *SharedMeter) Drawn() bool { return m.state.share.mode == drawn }

// Period is the end of the fixed window that the meter counts in, in s since 1970; 0 if it does not begin by the clock.
func (m *SharedMeter) Period() int64 {
	if m.Meter.Kind != Fixed {
		return 0
	}
	return m.state.counter.until / 1e9
}
