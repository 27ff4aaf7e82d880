// SPDX-License-Identifier: Apache-2.0

package fleet

import "math"

// A Demand estimates the load that is offered to a node, admitted or not: what was admitted would say how large the share
// is, not how large it should be. It is an average over a second, steady enough to share out by, that follows a faster one
// for a moment when the two differ by more than chance explains.
type Demand struct {
	slow, fast float64 // units per second
	size       float64 // units per call
	calls      float64 // over which size is the average, up to sizeCalls
	at         int64   // ns
	follow     int64   // until then slow is fast
	units      int64   // offered since at, where no time has passed
}

const (
	// slowSeconds is the time constant of the slow average.
	slowSeconds = 1

	// fastCalls is how many calls the fast average looks back, between fastLeast and fastMost seconds.
	fastCalls = 8
	fastLeast = 0.04
	fastMost  = 0.4

	// jumpSigmas is how far the two must differ to count as a jump, in standard deviations of a Poisson stream of calls;
	// eventSigmas how much a change beyond eventShare must be, to be worth a report of its own.
	jumpSigmas  = 2
	eventSigmas = 1.5
	eventShare  = 0.1

	// sizeCalls is over how many calls the size of a call is averaged.
	sizeCalls = 32
)

// Offer counts what was offered since the last time: so many units in so many calls. now is in ns. Call it at each call, or
// at a steady pace of at most 50 ms, also when nothing was offered.
func (d *Demand) Offer(now, units, calls int64) {
	if calls > 0 {
		d.calls = min(d.calls+float64(calls), sizeCalls)
		d.size += (float64(units)/float64(calls) - d.size) * min(1, float64(calls)/d.calls)
	}
	if d.at == 0 {
		d.at = now
	}
	d.units += units
	if now <= d.at {
		return
	}
	dt := float64(now-d.at) / 1e9
	rate := float64(d.units) / dt
	d.at, d.units = now, 0
	span := d.fastSpan()
	d.fast += (rate - d.fast) * -math.Expm1(-dt/span)
	d.slow += (rate - d.slow) * -math.Expm1(-dt/slowSeconds)
	if math.Abs(d.fast-d.slow) > jumpSigmas*d.sigma(d.slow, span) {
		d.follow = now + int64(3e9*span)
	}
	if now < d.follow {
		d.slow = d.fast
	}
}

// fastSpan is how many seconds the fast average looks back.
func (d *Demand) fastSpan() float64 {
	calls := max(d.slow, d.fast) / max(d.size, 1)
	return min(max(fastCalls/max(calls, 1), fastLeast), fastMost)
}

// sigma is the standard deviation that chance gives an exponential average over span seconds, in units per second.
func (d *Demand) sigma(rate, span float64) float64 {
	size := max(d.size, 1)
	return size * math.Sqrt(max(rate/size, 1)/2/span)
}

// PerWindow is the estimate in units per window of so many ns, to the nearest unit: no less than what has been offered since time
// last passed, so that the first call of all counts at once.
func (d *Demand) PerWindow(window int64) int64 {
	return min(max(int64(d.slow*float64(window)/1e9+0.5), d.units), maxUnits)
}

// changed says whether demand has moved so far from what was last reported that the share should move with it. rate is the
// share; all are units per second.
func (d *Demand) changed(reported, rate float64) bool {
	sigma := eventShare*reported + eventSigmas*d.sigma(d.slow, slowSeconds)
	up := d.slow > reported+sigma && d.slow > 0.95*rate
	down := d.slow < reported-sigma && d.slow < 0.8*rate
	return up || down
}
