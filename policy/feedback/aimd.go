// SPDX-License-Identifier: Apache-2.0

package feedback

import "github.com/weirproxy/weir/policy"

// A Controller adapts one limit of one provider's model: additive increase, multiplicative decrease. Its rate is
// a share of the limit in the policy, so that it means the same for every Envoy and stays right when the policy changes.
//
// Calls carry the epoch of the rate under which they were admitted. A cut begins a new epoch, and only what was admitted in
// the current one can cause the next: the rejections of a burst that is already on its way are one piece of news, not many
// (measured: to cut on each of them halves what is used, see `weir simulate aimd`).
type Controller struct {
	rules Rules
	rate  policy.Share
	epoch uint32
	cutAt int64 // ns

	since       int64 // ns: of the last change, or of the last rejection
	sent, could int64 // since then

	good     policy.Share // the rate before the last raise; 0 if there was none since the cut
	top      policy.Share // what went well before the last cut; 0 if there was none
	climbing bool         // it has not been near top since the cut

	ledger shareLedger
}

// A Sample is what Envoys saw of one limit since the one before.
type Sample struct {
	Epoch    uint32 // under which the calls were admitted
	Answered int64  // calls that ended with an OK or a rejection; all other endings say nothing of the rate
	Rejected int64  // of them with [Congestion] for this limit
	Sent     int64  // units that were sent
	Could    int64  // units that the rate in force let through: under Busy x Could it does not climb
}

// NewController starts with a share, clamped to the rules: [policy.Whole] for a policy that is trusted, or what it was before
// a restart. The first rejection cuts at once.
func NewController(r Rules, start policy.Share, now int64) *Controller {
	return &Controller{rules: r, rate: r.clamp(start), cutAt: now - r.Cooldown, since: now}
}

// Rate is the share in force.
func (c *Controller) Rate() policy.Share { return c.rate }

// Epoch is that of the rate in force.
func (c *Controller) Epoch() uint32 { return c.epoch }

// Limit is what is left of a limit of n units, at least 1 if n is.
func (c *Controller) Limit(n int64) int64 {
	whole, rest := n/int64(policy.Whole), n%int64(policy.Whole)
	return max(whole*int64(c.rate)+rest*int64(c.rate)/int64(policy.Whole), min(n, 1))
}

// Step takes a sample and says whether it changed the rate. It is called for each sample, and now and then with an empty one
// (of the current epoch), for the rate also climbs by the passing of time. A clock that goes back changes nothing.
func (c *Controller) Step(now int64, s Sample) (Change, bool) {
	s.clamp()
	if s.Epoch != c.epoch {
		return Change{}, false // it tells of a rate that is no longer in force
	}
	c.sent, c.could = c.sent+s.Sent, c.could+s.Could
	if c.rules.ByShare {
		return c.byShare(now, s)
	}
	if s.Rejected > 0 {
		return c.reject(now)
	}
	return c.climb(now)
}

// reject cuts, unless the last cut is too fresh.
func (c *Controller) reject(now int64) (Change, bool) {
	if now-c.cutAt < c.rules.Cooldown {
		c.rest(now)
		return Change{}, false
	}
	if c.rate > c.rules.clamp(0) {
		c.remember()
	}
	return c.cut(now, c.rate*c.rules.Decrease/policy.Whole, WasRejected)
}

// cut lowers the rate and begins an epoch. At the floor nothing changes, the epoch neither: Envoys only hear of changes, and
// would go on to send under an epoch that nobody listens to.
func (c *Controller) cut(now int64, to policy.Share, why Reason) (Change, bool) {
	c.cutAt = now
	if c.rules.clamp(to) < c.rate {
		c.epoch++
	}
	return c.set(now, to, why)
}

// climb raises after a time without rejections in which the rate was used.
func (c *Controller) climb(now int64) (Change, bool) {
	per, to, reason := c.next()
	if now-c.since < per {
		return Change{}, false
	}
	if !c.busy() {
		c.rest(now)
		return Change{}, false
	}
	return c.set(now, to, reason)
}

// busy says whether enough of the rate was used to believe that more would be.
func (c *Controller) busy() bool {
	return c.could > 0 && float64(c.sent) >= float64(c.could)*float64(c.rules.Busy)/float64(policy.Whole)
}

// rest begins to watch anew.
func (c *Controller) rest(now int64) { c.since, c.sent, c.could = max(now, c.since), 0, 0 }

func (c *Controller) set(now int64, to policy.Share, why Reason) (Change, bool) {
	c.rest(now)
	from := c.rate
	if c.rate = c.rules.clamp(to); c.rate > from {
		c.good = from
	}
	return Change{At: now, From: from, To: c.rate, Reason: why, Epoch: c.epoch}, c.rate != from
}

// maxSample bounds each number of a sample, so that sums of a day's do not overflow.
const maxSample = 1_000_000_000_000

func (s *Sample) clamp() {
	for _, p := range [...]*int64{&s.Answered, &s.Rejected, &s.Sent, &s.Could} {
		*p = min(max(*p, 0), maxSample)
	}
	s.Answered = max(s.Answered, s.Rejected)
}

// Follow makes it go by other rules from now on.
func (c *Controller) Follow(r Rules) { c.rules, c.rate = r, r.clamp(c.rate) }

// Since says whether a call that was admitted at the time at was admitted under the rate in force.
func (c *Controller) Since(at int64) bool { return at >= c.cutAt || c.epoch == 0 }
