// SPDX-License-Identifier: Apache-2.0

package feedback

import "github.com/weirproxy/weir/policy"

// Rules say how a rate follows what the provider answers. Shares are of the limit in the policy, but Decrease, which is of
// the rate in force.
type Rules struct {
	Decrease policy.Share // the rate is multiplied by it on a rejection
	Increase policy.Share // of Ceiling, added after Per without a rejection
	Per      int64        // ns
	Cooldown int64        // ns after a cut in which there is no other
	Floor    policy.Share
	Ceiling  policy.Share
	Busy     policy.Share // of the rate in force: nothing is learned above what is used, so under this it does not climb
	Fast     bool         // climb fast to where it was cut, then slowly
	ByShare  bool         // the second rule set: by the share of rejections, see byShare
}

// Busy is that of Netflix's concurrency-limits.
var defaults = Rules{
	Decrease: 700_000, Increase: 50_000, Per: 30 * second, Cooldown: 10 * second,
	Floor: 100_000, Ceiling: policy.Whole, Busy: 750_000,
}

// DefaultRules are those of a policy that does not say `adapt`.
func DefaultRules() Rules { return defaults }

// RulesOf completes what a policy says.
func RulesOf(a policy.AdaptSpec) Rules {
	r := defaults
	if a.Decrease > 0 && a.Decrease < 1 {
		r.Decrease = policy.Share(a.Decrease*float64(policy.Whole) + 0.5)
	}
	if a.Increase.Share > 0 && a.Increase.Per > 0 {
		r.Increase, r.Per = a.Increase.Share, int64(a.Increase.Per)
	}
	if a.Cooldown > 0 {
		r.Cooldown = int64(a.Cooldown)
	}
	if a.Ceiling > 0 {
		r.Ceiling = a.Ceiling
	}
	if a.Floor > 0 {
		r.Floor = a.Floor
	}
	r.Floor = min(r.Floor, r.Ceiling)
	r.Fast = a.Climb == "fast"
	return r
}

// step is what is added at once.
func (r *Rules) step() policy.Share { return max(r.Increase*r.Ceiling/policy.Whole, 1) }

func (r *Rules) clamp(s policy.Share) policy.Share { return min(max(s, r.Floor, 1), r.Ceiling) }

// A Reason says why a rate was changed.
type Reason uint8

// Reasons.
const (
	Unchanged      Reason = iota
	WasRejected           // the provider said: too fast
	NoRejection           // for Per
	ClimbedBack           // towards where it was cut
	TooManyRejects        // more than tooMany in a minute
	FewRejects            // less than few in five minutes
	numReasons
)

var reasonNames = [numReasons]string{"unchanged", "rejected", "no_rejection", "climb", "too_many_rejections", "few_rejections"}

func (r Reason) String() string {
	if r >= numReasons {
		return "unknown"
	}
	return reasonNames[r]
}

// A Change is one change of a rate, for the log.
type Change struct {
	At       int64 // ns
	From, To policy.Share
	Reason   Reason
	Epoch    uint32 // of the new rate
}
