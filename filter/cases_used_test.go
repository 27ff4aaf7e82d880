// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"cmp"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/policytest"
)

// A usedUp is what of a key's limits is used.
type usedUp struct {
	units    map[policy.Dimension]int64
	limits   map[policy.Dimension]int64
	inFlight int64
}

// caseKeys name a caller where a case does.
type caseKeys struct{ tenant, user, tool, model string }

// used looks up what counts against the limits of a key, as the next worker would see it, and changes nothing.
func (w *caseWorld) used(tier policy.Tier, k caseKeys) (u usedUp) {
	u = usedUp{units: map[policy.Dimension]int64{}, limits: map[policy.Dimension]int64{}}
	look := policy.NewLedger(copyOf(w.process.Store), 78)
	look.SetWall(w.process.Clock, w.process.Wall.UnixNano())
	for _, s := range w.steps(k) {
		if s.Tier != tier {
			continue
		}
		for _, m := range s.Limit.Meters {
			all := policy.Cost{Requests: m.Limit(), Input: m.Limit()}
			if m.Dimension.Unit() == policy.OutputTokens {
				all.Input, all.Output = 0, m.Limit()
			}
			u.limits[m.Dimension] = m.Limit()
			u.units[m.Dimension] = m.Limit() - w.left(look, s, policy.NewLimit(policy.Enforce, 0, m), all, m.Limit())
		}
		u.inFlight = 1 - w.left(look, s, policy.NewLimit(policy.Enforce, 1), policy.Cost{Requests: 1 << 30}, 1)
	}
	return u
}

// left asks for all there is of one limit, and is told what remains. If all of it is there, it is given back.
func (w *caseWorld) left(look *policy.Ledger, s policy.Step, l *policy.Limit, all policy.Cost, whole int64) int64 {
	s.Limit = l
	var path policy.Path
	path.Add(s)
	var res policy.Reservation
	if d := look.Reserve(w.process.Clock, &path, all, &res); d.Verdict == policy.Deny {
		return d.Refusal.Remaining
	}
	look.Settle(w.process.Clock, &res, policy.Cost{})
	return whole
}

// copyOf is a store in which one may try what is left.
func copyOf(s *policytest.Store) *policytest.Store {
	c := policytest.NewStore()
	for _, key := range s.Keys() {
		v, _, _ := s.Get(key)
		c.Set(key, v, 0)
	}
	return c
}

// steps are the buckets that a caller meets.
func (w *caseWorld) steps(k caseKeys) []policy.Step {
	caller := policy.Caller{
		Tenant: cmp.Or(k.tenant, caseTenant), User: cmp.Or(k.user, caseUser), Environment: caseEnvironment, Vouched: true,
		Tool: w.policy.Hasher.Shorten(cmp.Or(k.tool, "nobody")),
	}
	var model *policy.Model
	if len(w.policy.Providers) > 0 {
		model, _ = w.policy.Providers[0].Models.Lookup(k.model)
	}
	var path policy.Path
	w.policy.Path(&path, model, &caller)
	return path.Steps[:path.Len]
}

// charged is what a call counts as by now: requests and tokens.
func (w *caseWorld) charged(id string) (input, output, requests int64) {
	u := w.used(policy.TierTool, caseKeys{tool: callName(id)}).units
	return u[policy.ITPM], u[policy.OTPM], u[policy.RPM]
}

// take uses up so much of the limits that callers meet who say nothing of themselves.
func (w *caseWorld) take(cost policy.Cost) {
	var path policy.Path
	for _, s := range w.steps(caseKeys{}) {
		if s.Tier != policy.TierTool {
			path.Add(s)
		}
	}
	w.ledger.SetWall(w.process.Clock, w.process.Wall.UnixNano())
	var res policy.Reservation
	if d := w.ledger.Reserve(w.process.Clock, &path, cost, &res); d.Verdict == policy.Deny {
		w.notKnown("cannot use up %+v: %+v", cost, d.Refusal)
		return
	}
	w.ledger.Settle(w.process.Clock, &res, cost)
	w.ledger.Flush(w.process.Clock)
}

// exhaustZeros uses up the limits of a tier that a case says are 0.
func (w *caseWorld) exhaustZeros(t *caseTier) {
	none := func(list ...*int64) (n int64) {
		for _, v := range list {
			if v != nil && *v == 0 {
				n = 1
			}
		}
		return n
	}
	cost := policy.Cost{
		Requests: none(t.RPS, t.RPM, t.RPH, t.RPD), Input: none(t.TPM, t.TPH, t.TPD, t.ITPM), Output: none(t.OTPM),
	}
	if cost != (policy.Cost{}) {
		w.take(cost)
	}
}

// exhaust uses up all of the limits.
func (w *caseWorld) exhaust() {
	var cost policy.Cost
	u := w.used(policy.TierTenant, caseKeys{})
	for d, limit := range u.limits {
		left := limit - u.units[d]
		switch d.Unit() {
		case policy.Requests:
			cost.Requests = max(cost.Requests, left)
		case policy.OutputTokens:
			cost.Output = max(cost.Output, left)
		case policy.Tokens, policy.InputTokens:
			cost.Input = max(cost.Input, left)
		}
	}
	w.take(cost)
}
