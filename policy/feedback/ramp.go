// SPDX-License-Identifier: Apache-2.0

package feedback

import "github.com/weirproxy/weir/policy"

// A Ramp bounds how fast a rate may climb: above a number of tokens a minute, no minute may have more than
// growth above the fullest minute between one window ago and two. OpenAI answers slow_down to anything steeper, whatever
// the limits allow. A pause of up to a window is forgiven, for the provider still knows the old rate; a longer one is not.
type Ramp struct {
	above  int64 // units a minute that are always allowed
	growth policy.Share
	width  int64 // ns of a slot: a minute, or more where the window is long
	lag    int64 // slots in a window

	head  int64 // number of the running slot; what is before it is complete
	begun bool
	slots [rampSlots]int64 // units sent
}

// rampSlots hold two windows of up to 31 slots, and the running one.
const rampSlots = 64

// NewRamp makes a ramp of a policy's `ramp: {above, growth}`; a window under a minute counts as one.
func NewRamp(above int64, growth policy.Growth) *Ramp {
	window := max(int64(growth.Per), minute)
	width := max(minute, (window+30)/31)
	return &Ramp{above: max(above, 0), growth: growth.Share, width: width, lag: (window + width - 1) / width}
}

// advance moves the running slot up to now; a clock that goes back changes nothing.
func (r *Ramp) advance(now int64) {
	to := now / r.width
	if !r.begun || to-r.head > rampSlots {
		if !r.begun || to > r.head {
			r.head, r.begun, r.slots = to, true, [rampSlots]int64{}
		}
		return
	}
	for r.head < to {
		r.head++
		r.slots[uint64(r.head)%rampSlots] = 0
	}
}

// Sent counts n units that were sent at the time now.
func (r *Ramp) Sent(now, n int64) {
	r.advance(now)
	slot := &r.slots[uint64(r.head)%rampSlots]
	*slot = min(*slot+min(max(n, 0), maxCount), maxCount)
}

// Ceiling is how many units a minute may be sent now.
func (r *Ramp) Ceiling(now int64) int64 {
	r.advance(now)
	peak := int64(0)
	for age := r.lag; age <= 2*r.lag; age++ {
		peak = max(peak, r.slots[uint64(r.head-age)%rampSlots])
	}
	perMinute := mulShare(peak, policy.Share(minute*int64(policy.Whole)/r.width))
	return max(r.above, perMinute+mulShare(perMinute, r.growth))
}

// Room is how many units more may be sent in the running minute: what a limiter asks for that counts by minutes.
func (r *Ramp) Room(now int64) int64 {
	r.advance(now)
	all := mulShare(r.Ceiling(now), policy.Share(r.width/(minute/int64(policy.Whole))))
	return max(all-r.slots[uint64(r.head)%rampSlots], 0)
}

// Wait is how long until the next minute begins, in ns: what a call waits that finds no room.
func (r *Ramp) Wait(now int64) int64 { return r.width - (now%r.width+r.width)%r.width }

// mulShare is n*share rounded down, for n up to maxCount and any share.
func mulShare(n int64, share policy.Share) int64 {
	whole, rest := n/int64(policy.Whole), n%int64(policy.Whole)
	return min(whole*int64(share), 1<<62) + rest*int64(share)/int64(policy.Whole)
}
