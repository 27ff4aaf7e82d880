// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// An agent that is about to send several calls at once reserves the sum of them first, or learns how many would fit: half a
// fan-out is of no use to it (RATIONALE.md, "Why is a fan-out all or nothing?"). Branches may come to any worker.

// A Leg is the calls of one kind in a fan-out: to one model, or of one tool.
type Leg struct {
	Path  Path
	Each  Cost // of one call
	Calls int64
}

// calls is how many the leg has if k of the first leg's n were reserved.
func (g *Leg) calls(k, n int64) int64 { return mulDivUp(g.Calls, k, n) }

// MaxLegs is how many kinds of calls a fan-out may have.
const MaxLegs = 8

// FanoutBounds are what a policy allows.
type FanoutBounds struct {
	Most    int64 // calls of one kind
	TTL     time.Duration
	PerTree int // open ones of one owner
}

// A FanoutID names an open fan-out to all workers. Whoever knows it and is its owner may take a branch, so it must be random.
type FanoutID [16]byte

// A FanoutOwner is who may use a fan-out: a tree of a user of a tenant, or what of them is known.
type FanoutOwner struct{ Tenant, Tree Key }

// OpenFanout takes the cost of all calls of all legs from all their buckets, or from none, for branches that may come to any
// worker within the bounds' time; then what none has taken comes back. Of what a user has, or of what a tenant has where users
// have no limit, it takes half at most. Refused, the reason is FanoutRefused, with the limit that decides unless it is a bound of
// the policy, and Decision.Fits says how many calls of the first leg would be admitted with their part of the others: at least 0
// and less than were asked for.
func (l *Ledger) OpenFanout(now int64, id FanoutID, owner FanoutOwner, legs []Leg, b *FanoutBounds) (d Decision) {
	if l.full(owner.Tenant) {
		return Decision{Verdict: Deny, Refusal: Refusal{Reason: CASContention, Wait: inFlightWait}}
	}
	if l.openOf(now, owner) >= b.PerTree {
		return Decision{Verdict: Deny, Refusal: Refusal{Reason: FanoutRefused, Tier: TierTree}}
	}
	j := newJoint(legs)
	if n := legs[0].Calls; !j.within(n, b.Most) {
		d.Verdict = Deny
	} else if l.loadJoint(now, j); l.checkJoint(now, j, n, &d) {
		l.takeJoint(now, j, &d)
	}
	if d.Verdict == Deny {
		if d.Refusal.Reason != CASContention {
			d.Fits, d.Refusal.Reason = l.fits(now, j, b.Most), FanoutRefused
		}
		return d
	}
	open := openFanout{id: id, tenant: owner.Tenant, legs: j.reservations(), expires: now + int64(b.TTL), moved: now}
	if !l.publish(now, owner, &open, b.PerTree) {
		open.settle(l, now)
		d.Verdict, d.Refusal = Deny, Refusal{Reason: CASContention, Wait: inFlightWait}
		return d
	}
	l.fanouts = append(l.fanouts, open)
	return d
}

// fits is the largest number of calls of the first leg, less than all, that would be admitted. It only looks.
func (l *Ledger) fits(now int64, j *joint, most int64) int64 {
	l.loadJoint(now, j)
	low, high := int64(0), j.legs[0].Calls
	for low+1 < high { // what admits k calls admits fewer
		k := low + (high-low)/2
		var d Decision
		if j.within(k, most) && l.checkJoint(now, j, k, &d) {
			low = k
		} else {
			high = k
		}
	}
	return low
}

// holdMore counts more calls of this worker in flight on a bucket, without taking anything.
func (l *Ledger) holdMore(now int64, s *Step, spill bool, n int64) {
	if s.Limit.InFlight > 0 {
		l.addCalls(l.heldOf(s, spill), s, spill, n)
		l.settleNow(now, settlement{step: *s, spill: spill})
	}
}

// lookAfterFanouts lets go of what branches have taken over at other workers, and gives back what none has taken in time. With
// many open it looks at some of them at a time.
func (l *Ledger) lookAfterFanouts(now int64) {
	for range min(len(l.fanouts), fanoutsAtOnce) {
		l.nextFanout %= len(l.fanouts)
		if l.lookAfter(now, &l.fanouts[l.nextFanout]) {
			l.nextFanout++
			continue
		}
		last := len(l.fanouts) - 1
		l.fanouts[l.nextFanout], l.fanouts[last] = l.fanouts[last], openFanout{}
		l.fanouts = l.fanouts[:last]
	}
}

// maxOpen is how many fan-outs a worker has open at most, of one tenant an eighth; fanoutsAtOnce how many of them a Flush looks at.
const (
	maxOpen       = 256
	fanoutsAtOnce = 64
)

// full says whether this worker has as many open as it may.
func (l *Ledger) full(tenant Key) bool {
	own := 0
	for i := range l.fanouts {
		if l.fanouts[i].tenant == tenant {
			own++
		}
	}
	return len(l.fanouts) == maxOpen || own == maxOpen/8
}

func (l *Ledger) lookAfter(now int64, o *openFanout) (open bool) {
	var f fanoutRecord
	cas, found := l.getFanout(&o.name, &f)
	found = found && f.id == o.id
	calls := int64(0)
	for n := range o.legs {
		left, held := Cost{}, &o.legs[n] // not found: all of it was taken
		if found {
			left = f.leg[n].left
		}
		if taken := held.Cost.Requests - left.Requests; taken > 0 {
			for i := range held.path.Len {
				l.holdMore(now, &held.path.Steps[i], held.spill[i], -taken)
			}
		}
		held.Cost = left
		calls += left.Requests
	}
	if now < o.expires && calls > 0 {
		if now-o.moved >= moveEvery {
			l.moveFanout(now, o, &f, cas)
		}
		return true
	}
	f = fanoutRecord{layout: fanoutLayout}
	if found && !l.store.Set(o.name.str(), f.bytes(), cas) {
		return true // a branch came just now: look again
	}
	o.settle(l, now)
	return false
}

// settle gives back what is left.
func (o *openFanout) settle(l *Ledger, now int64) {
	for n := range o.legs {
		l.Settle(now, &o.legs[n], Cost{})
	}
}
