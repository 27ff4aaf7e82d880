// SPDX-License-Identifier: Apache-2.0

package feedback

import "github.com/weirproxy/weir/policy"

// With `climb: fast` the rate goes back quickly to where it was cut, for that is what the provider gave a moment ago, stays
// there for long, and looks for more only slowly; clear of the old place it climbs as without. The shape is that of CUBIC
// (RFC 9438) in pieces, with the cool-down as its unit of time: CUBIC's own constants overshoot to 184 % and more under a
// feedback that takes seconds (limits.md (c)).
const (
	nearTop = 950_000   // of top: where the fast climb ends
	pastTop = 1_030_000 // of top: from where it climbs as without
	slowly  = 5         // how many times smaller steps are near the top
	gently  = 12_000    // of top: what such a step is at most, where the ceiling is far above
)

// next is what the rate climbs to, after how long without a rejection, and why.
func (c *Controller) next() (per int64, to policy.Share, why Reason) {
	r := &c.rules
	switch target := c.top * nearTop / policy.Whole; {
	case !r.Fast || c.top == 0 || c.rate > c.top*pastTop/policy.Whole:
		return r.Per, c.rate + r.step(), NoRejection
	case c.climbing && c.rate < target:
		step := max((target-c.rate+1)/2, r.step()/slowly)
		return r.Cooldown, min(c.rate+step, target), ClimbedBack
	}
	c.climbing = false
	return r.Per, c.rate + max(min(r.step()/slowly, c.top*gently/policy.Whole), 1), NoRejection
}

// remember keeps the last rate that went well before the one that is about to be cut: an overshoot taken for the top would
// have the next climb end above it. Cut again before it was back, the provider gives less than it did: the top is taken down
// to the middle of the cut, as RFC 9438 section 4.7 does.
func (c *Controller) remember() {
	switch {
	case c.climbing:
		c.top = c.rate * (policy.Whole + c.rules.Decrease) / (2 * policy.Whole)
	case c.good > 0:
		c.top = c.good
	default:
		c.top = c.rate
	}
	c.climbing, c.good = true, 0
}
