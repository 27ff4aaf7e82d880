// SPDX-License-Identifier: Apache-2.0

package fleet

import "github.com/weirproxy/weir/policy"

// A Share is a node's part of one quota: what it may spend, and for how long. While the lease runs it has the granted terms,
// after that its floor, and some time later nothing.
type Share struct {
	key    string
	window int64
	meter  Meter
	lease  policy.Lease

	demand   Demand
	told     float64 // demand in the last report, units per second
	ackOf    uint64  // version in the last report
	idle     int     // reports without demand in a row
	denied   bool
	since    int64 // when this denial began
	lastDeny int64 // when the one before ended
}

// idleReports is after how many reports without demand a share is not reported any more, so that only what is used travels:
// its lease ends, and the controller has it back.
const idleReports = 3

// Offer counts what was offered since the last time, admitted or not, and whether any of it was denied: see [Demand.Offer].
func (s *Share) Offer(now, units, calls int64, denied bool) {
	s.demand.Offer(now, units, calls)
	if denied && !s.denied {
		s.since = now
	}
	if !denied && s.denied {
		s.lastDeny = now
	}
	s.denied = denied
}

// Terms are what is in force now.
func (s *Share) Terms(now int64) policy.Terms {
	s.Settle(now)
	return s.lease.Terms
}

// None says whether the node has no share at all: it has never had a grant, or not for too long.
func (s *Share) None(now int64) bool {
	s.Settle(now)
	return s.lease.Stage == policy.NoLease
}

// Held is the most units that the share may come to in a window: its cap, or what the ring still counts.
func (s *Share) Held(now int64) int64 {
	s.Settle(now)
	return max(s.lease.Terms.Cap, s.meter.Remembered(now))
}

// Live says whether the share has a lease, or the ring counts anything.
func (s *Share) Live(now int64) bool {
	s.Settle(now)
	return s.lease.Stage == policy.Leased || s.meter.Remembered(now) > 0
}

// Settle brings the meter down where a lease has ended. It must be called before anything is taken from the meter; what is
// done late is done as of the time when it was due. What the bucket loses by it is not given back: the controller may have lent it
// to somebody else.
func (s *Share) Settle(now int64) {
	for at, changed := s.lease.Lapse(now); changed; at, changed = s.lease.Lapse(now) {
		s.meter.Put(at, s.lease, 0)
	}
}

// take puts a grant in force that answers a report sent at the time sent.
func (s *Share) take(now, sent int64, epoch uint64, g *Grant) {
	s.Settle(now)
	until := sent + g.Lease
	s.lease = policy.Lease{
		Epoch: epoch, Version: g.Version, Stage: policy.Leased, Terms: policy.Terms{Rate: g.Rate, Burst: g.Burst, Cap: g.Cap},
		Until: until, Floor: policy.Terms{Rate: g.Floor, Cap: g.Floor}, FloorUntil: until + g.Forget,
		Returned: s.lease.Returned, Tight: g.Tight,
	}
	if g.Rate > 0 {
		s.lease.Floor.Burst = part(g.Floor, g.Burst, g.Rate)
	}
	if now >= until { // too late: it kills older ones, and the tokens that came with it count no more
		s.Settle(now)
		return
	}
	s.lease.Returned += s.meter.Put(now, s.lease, g.Tokens)
}

// event says whether the share is worth a report before the period has passed.
func (s *Share) event(now, reported int64) bool {
	fresh := s.denied && s.since > reported && s.since-s.lastDeny > int64(denialGap)
	return fresh || s.demand.changed(s.told, float64(s.lease.Terms.Rate)/float64(s.window)*1e9)
}

// report says what the node holds, and whether that is worth saying.
func (s *Share) report(now int64, p Params, ackOnly bool) (h Holding, worth bool) {
	s.Settle(now)
	remembered := s.meter.Remembered(now)
	if s.lease.Tight {
		s.trim(now, max(s.lease.Floor.Cap, remembered+part(s.lease.Terms.Rate, int64(p.Ahead), s.window)))
	}
	h = Holding{
		Key: s.key, Version: s.lease.Version, Demand: s.demand.PerWindow(s.window), Rate: s.lease.Terms.Rate, Cap: s.lease.Terms.Cap,
		Remembered: remembered, Spent: s.meter.Spent(), Returned: s.lease.Returned,
	}
	if s.lease.Stage != policy.NoLease {
		h.Floor = s.lease.Floor.Rate
	}
	if s.idle++; h.Demand > 0 {
		s.idle = 0
	}
	old := s.lease.Stage == policy.Leased && s.lease.Version == 0 // of an earlier epoch
	worth = s.idle < idleReports || remembered > 0 || old || ackOnly && s.lease.Version != s.ackOf
	s.told, s.ackOf = s.demand.slow, s.lease.Version
	return h, worth
}

// trim lowers the cap to what the node needs. The report that says so is the acknowledgement.
func (s *Share) trim(now, to int64) {
	if to < s.lease.Terms.Cap {
		s.lease.Terms.Cap = to
		s.meter.Put(now, s.lease, 0)
	}
}
