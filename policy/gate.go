// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// A Gate is what a provider's answers have made of a pool, whatever its limits say: it is closed for a time, or its rate is
// cut. It lies in the pool's record, so whoever reads the pool's buckets meets it, on every worker, from the next call on.
type Gate struct {
	Until   int64  // ns: until when nothing is admitted
	Rate    Share  // what is left of the limits' rates; 0: all
	Version uint32 // a gate of a later version is not replaced by one of an earlier
	Why     Reason // it is closed
}

// SetGate puts a gate to the pool of a step; false if others were faster each time. What this worker has reserved ahead goes back:
// nothing more is sent on it. Other workers may have reserved for [FlushEvery] ahead.
func (l *Ledger) SetGate(now int64, s *Step, g Gate) bool {
	r := &l.loads[0]
	for range settleTries {
		l.load(now, s, r)
		if r.gate.Version >= g.Version {
			return true
		}
		r.gate = g
		r.fit(now, l.wall, now, l.cut(s.Limit, g.Rate), &l.spare) // the rate so far holds until now
		if l.put(now, s, r) {
			l.returnAll(now)
			return true
		}
	}
	return false
}

// returnAll gives back all batches.
func (l *Ledger) returnAll(now int64) {
	for i := range l.batches {
		if s := &l.batches[i]; s.reservation.path.Len > 0 {
			l.giveBackBatch(now, s)
		}
	}
}

// refusal is that of a closed gate.
func (g *Gate) refusal(now int64, t Tier) Refusal {
	return Refusal{Reason: g.Why, Tier: t, Wait: time.Duration(g.Until - now)}
}

// Gated says whether it was a closed gate that refused, whatever came of it.
func (r *Refusal) Gated() bool {
	switch r.Reason {
	case ProviderCooling, QuotaExhausted, QueueFull, QueueTimeout:
		return r.Limit == 0
	}
	return false
}

// A cutLimit is a limit with its rate cut, kept so that it is made once.
type cutLimit struct {
	of   *Limit
	rate Share
	is   *Limit
}

// cut gives a limit whose rate is a share of what the policy says.
func (l *Ledger) cut(of *Limit, rate Share) *Limit {
	if rate <= 0 || rate >= Whole {
		return of
	}
	c := &l.cuts[of.print%uint64(len(l.cuts))]
	if c.of != of || c.rate != rate {
		*c = cutLimit{of, rate, of.slow(rate)}
	}
	return c.is
}

// slow gives the limit with a share of its rate. Only its buckets are slower, and hold less: its windows stay, so that no request
// becomes too large for good. Quotas of a day and more, fixed windows and calls in flight are none of a rate.
func (l *Limit) slow(rate Share) *Limit {
	var meters []Meter
	for _, m := range l.Meters {
		if m.adapts() {
			window := min(mulDivUp(m.rate.window, int64(Whole), int64(rate)), int64(MaxWindow))
			m.rate = newRate(m.rate.limit, window, max(mulDivDown(m.rate.burst, int64(rate), int64(Whole)), 1))
		}
		meters = append(meters, m)
	}
	slow := NewLimit(l.Mode, l.InFlight, meters...)
	slow.shared, slow.entry = l.shared, l.entry
	return slow
}

// adapts says whether a meter is one whose rate may be cut.
func (m *Meter) adapts() bool {
	return m.paced && !m.shared && !m.counted() && m.Window() < quotaWindow
}

// Adapts says whether the limit has a rate that may be cut.
func (l *Limit) Adapts() bool {
	for i := range l.Meters {
		if l.Meters[i].adapts() {
			return true
		}
	}
	return false
}

// InUse is what share of the rate in force is used: of the rate of its meters, that which is used most.
func (l *Ledger) InUse(now int64, s *Step) (used Share) {
	r := &l.loads[0]
	l.load(now, s, r)
	for i, m := range s.Limit.Meters {
		if m.adapts() {
			used = max(used, r.meters[i].inUse(max(now, r.clock), m.rate.window))
		}
	}
	return used
}

// inUse is what share of its rate a meter has used: of what the window admits at that rate, or else of what the bucket holds.
// window is the one at the full rate.
func (s *meterState) inUse(now, window int64) Share {
	if s.ringed() {
		used := mulDivDown(s.rate.limit-s.room(now), int64(Whole), s.rate.limit)
		return Share(mulDivDown(used, s.rate.window, window))
	}
	return Whole - Share(mulDivDown(s.level(now), int64(Whole), s.rate.burst))
}

// At is when the reservation was made, by its widest bucket; 0 if it holds nothing.
func (r *Reservation) At() int64 {
	if r.path.Len == 0 {
		return 0
	}
	return r.at[r.path.Len-1]
}
