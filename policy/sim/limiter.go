// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/policytest"
)

// A limiter is a production limit of its own.
type limiter struct {
	ledger *policy.Ledger
	path   policy.Path
}

func newLimiter(l *policy.Limit) *limiter {
	r := &limiter{ledger: policy.NewLedger(policytest.NewStore(), 1)}
	r.path.Add(policy.Step{Tier: policy.TierProvider, Space: policy.Space{Tier: policy.TierProvider}, Key: 1, Owner: 1, Limit: l})
	return r
}

var oneCall = policy.Cost{Requests: 1}

func (l *limiter) take(now int64, held *policy.Reservation) policy.Decision {
	return l.ledger.Reserve(now, &l.path, oneCall, held)
}

// perSecond is a continuous bucket of calls.
func perSecond(rate, burst int64) policy.Meter {
	return policy.NewMeter(policy.MeterSpec{Dimension: policy.RPS, Kind: policy.Continuous, Limit: rate, Burst: burst})
}
