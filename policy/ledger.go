// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// A Ledger is one worker's access to the buckets in a store that it shares with others. It is not safe for concurrent
// use: each worker has its own. It holds no state of the buckets, only scratch memory and its own calls in flight.
type Ledger struct {
	store     Store
	vm        uint64
	hints     [1024]slotHint
	loads     [maxSteps]loaded
	probed    loaded
	spare     record
	held      map[heldKey]*held
	heldCache [heldCacheSize]heldEntry
	batches   [64]batch
	cuts      [16]cutLimit
	later     []settlement // until the next Flush
	order     []int32      // of later, by bucket; it and batch are used again in each Flush
	batch     []settlement // those of one bucket
	wall      int64        // what the wall clock is ahead of the clock of decisions, ns

	lacks []Lack

	fanouts    []openFanout
	nextFanout int // that is looked after

	flushing bool
	parked   []settlement // until the next Renew
}

// A slotHint is where a key's record was last seen.
type slotHint struct {
	key  Key
	slot uint32
}

// maxTries bounds how often a worker tries again because another was faster; then it refuses with CASContention.
// settleTries is the bound where giving up would lose a refund.
const (
	maxTries    = 16
	settleTries = 64
)

// NewLedger makes a ledger. vm must be random and not 0: it tells this worker's calls in flight from all others', those of
// an earlier life included.
func NewLedger(store Store, vm uint64) *Ledger {
	return &Ledger{store: store, vm: vm, held: map[heldKey]*held{}}
}

// SetWall tells the time of the wall clock, in ns since 1970, which only fixed windows go by. It should be told now and then:
// the difference between the two clocks changes when the wall clock is put right.
func (l *Ledger) SetWall(now, wall int64) { l.wall = wall - now }

// A Reservation is what a request holds on its buckets. The zero value holds nothing.
type Reservation struct {
	Cost  Cost
	path  Path
	at    [maxSteps]int64 // when it was taken from each
	spill [maxSteps]bool  // from the overflow record
	ample bool
}

// Path is the buckets that it holds something on.
func (r *Reservation) Path() *Path { return &r.path }

// Reserve takes the cost from all buckets of the path, or from none. now is in ns of a clock that all workers share and
// that does not go back. It fills res if it admits.
func (l *Ledger) Reserve(now int64, path *Path, cost Cost, res *Reservation) Decision {
	var d Decision
	l.lacks = l.lacks[:0]
	for i := range path.Len {
		l.load(now, &path.Steps[i], &l.loads[i])
		l.check(now, &path.Steps[i], &l.loads[i], &cost, path.Shadow, &d)
	}
	path.checkPart(now, &cost, &d)
	if d.Verdict == Admit {
		l.takeAll(now, path, cost, res, &d)
	}
	return d
}

// takeAll takes the cost from all buckets, which were loaded and checked, or from none.
func (l *Ledger) takeAll(now int64, path *Path, cost Cost, res *Reservation, d *Decision) bool {
	res.Cost, res.path.Len, res.path.Shadow, res.path.Part, res.ample = cost, 0, path.Shadow, nil, false
	for i := range path.Len {
		if !l.takeStep(now, &path.Steps[i], i, &cost, res, d) {
			l.giveBack(now, res)
			return false
		}
	}
	if !path.takePart(now, &cost, res) {
		l.giveBack(now, res)
		d.Verdict, d.Refusal = Deny, Refusal{Reason: CASContention, Tier: TierProvider, Wait: time.Second}
		return false
	}
	return true
}

// takeStep takes the cost from one bucket that was loaded and checked.
func (l *Ledger) takeStep(now int64, s *Step, i int, cost *Cost, res *Reservation, d *Decision) bool {
	r := &l.loads[i]
	at, ok := l.takeFrom(now, s, r, cost, cost, res.path.Shadow, d)
	if ok {
		res.path.Steps[i], res.at[i], res.spill[i] = *s, at, r.spill
		res.path.Len = i + 1
	}
	return ok
}

// takeFrom takes the cost from one bucket that was loaded, and checked to have what is needed. If others are faster, it loads and
// checks anew.
func (l *Ledger) takeFrom(now int64, s *Step, r *loaded, need, cost *Cost, shadow bool, d *Decision) (at int64, ok bool) {
	for try := range maxTries {
		if try > 0 {
			l.load(now, s, r)
			l.check(now, s, r, need, shadow, d)
			if d.Verdict != Admit {
				return 0, false
			}
		}
		at := r.take(now, cost)
		if s.Limit.InFlight > 0 {
			r.hold(now, l.vm, r.held.inFlight()+cost.Requests, &l.spare)
		}
		if l.put(now, s, r) {
			if s.Limit.InFlight > 0 {
				l.addCalls(r.held, s, r.spill, cost.Requests)
			}
			return at, true
		}
	}
	d.Verdict = Deny
	d.Refusal = Refusal{Reason: CASContention, Tier: s.Tier, Wait: time.Second}
	return 0, false
}

// take takes the cost from all meters and gives the time at which it counts.
func (r *record) take(now int64, cost *Cost) int64 {
	at := r.tick(now)
	for i := range r.meters {
		m := &r.meters[i]
		m.take(at, cost.In(m.unit()))
	}
	return at
}

// check asks whether a step admits the cost and adds to the decision if not.
func (l *Ledger) check(now int64, s *Step, r *loaded, cost *Cost, shadow bool, d *Decision) {
	if r.gate.Until > now {
		d.refuse(r.gate.refusal(now, s.Tier), shadow || s.Limit.Mode == Shadow)
	}
	now = max(now, r.clock)
	for i := range s.Limit.Meters {
		m := &r.meters[i]
		if wait := m.wait(now, cost.In(m.unit())); wait > 0 {
			if m.shared() {
				l.noteLack(now, s, m, cost)
			}
			f := refusalOf(now, s.Tier, m, cost, wait)
			if _, probed := s.Limit.Probed(f.Dimension); probed {
				f.Limit = max(m.share.lease.Terms.Rate, 1) // nobody knows the whole limit
			}
			d.refuse(f, shadow || s.Limit.Mode == Shadow)
		}
	}
	if s.Limit.InFlight > 0 {
		if calls := r.inFlight(now, l.vm) + r.held.inFlight(); calls+cost.Requests > s.Limit.InFlight {
			d.refuse(inFlightRefusal(s, calls), shadow || s.Limit.Mode == Shadow)
		}
	}
}

// refuse adds a refusal to the decision.
func (d *Decision) refuse(f Refusal, shadow bool) {
	to := &d.Refusal
	if shadow {
		to = &d.Shadow
	} else {
		d.Verdict = Deny
	}
	if f.worse(*to) {
		*to = f
	}
}

func refusalOf(now int64, t Tier, m *meterState, cost *Cost, wait int64) Refusal {
	f := Refusal{
		Tier: t, Dimension: m.dimension(), Limit: m.rate.limit, Window: time.Duration(m.rate.window), Burst: m.rate.burst,
		Need: cost.In(m.unit()), Remaining: m.remaining(now), Wait: time.Duration(wait),
	}
	if m.shared() {
		f.Limit = m.share.whole
	}
	if f.Reason = f.reason(m.kind(), wait == forever); wait < forever && m.shared() && m.noShare(now, f.Need) {
		f.Reason = NoShare
	}
	return f
}

// RefusalOf is a refusal by a meter that a store keeps elsewhere.
func RefusalOf(t Tier, m Meter, cost Cost, remaining int64, wait time.Duration, tooLarge bool) Refusal {
	f := Refusal{
		Tier: t, Dimension: m.Dimension, Limit: m.rate.limit, Window: m.Window(), Burst: m.rate.burst,
		Need: cost.In(m.Dimension.Unit()), Remaining: remaining, Wait: wait,
	}
	f.Reason = f.reason(m.Kind, tooLarge)
	return f
}

// reason says why a meter refuses.
func (f *Refusal) reason(kind WindowKind, tooLarge bool) Reason {
	switch {
	case tooLarge:
		return RequestTooLarge
	case f.Dimension.Unit() == Retries:
		return RetryBudgetExhausted
	case kind == Stock, f.Window >= quotaWindow && f.Wait > quotaWait:
		return QuotaExhausted
	}
	return LimitExceeded
}

func inFlightRefusal(s *Step, calls int64) Refusal {
	return Refusal{
		Reason: LimitExceeded, Tier: s.Tier, Dimension: InFlight, Limit: s.Limit.InFlight,
		Remaining: s.Limit.InFlight - calls, Wait: inFlightWait,
	}
}
