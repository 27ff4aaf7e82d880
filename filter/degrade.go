// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// A request that a limit refuses goes elsewhere, if its class says so: to a smaller model, to another provider, or it gets a fixed
// reply. The refusal has given back what it took before; what goes elsewhere is estimated and reserved as if it had come so.

// instead has a request that was refused go elsewhere; false: it stays refused, as it was.
func (s *Stream) instead(r *policy.Refusal, c *policy.Caller) (Action, bool) {
	switch r.Reason {
	case policy.CASContention, policy.RetryBudgetExhausted, policy.FanoutRefused:
		return Pause, false
	}
	switch s.class.OnLimit {
	case policy.OnLimitDegrade:
		return s.degrade(r, c)
	case policy.OnLimitSpill:
		return s.spill(r, c)
	}
	return Pause, false
}

// afterRetries has the next call of a request tree that has used up its retries go to a smaller model. A call that is a retry is
// left to the budget.
func (s *Stream) afterRetries(now int64, path *policy.Path, c *policy.Caller) (Action, bool) {
	if path.Shadow || s.retries() > 0 || !s.vm.ledger.RetriesSpent(now, path) {
		return Pause, false
	}
	return s.degrade(&policy.Refusal{Reason: policy.RetryBudgetExhausted, Tier: policy.TierTree, Dimension: policy.TreeRetries}, c)
}

// degrade sends a request to a smaller model, or answers it with a fixed reply.
func (s *Stream) degrade(why *policy.Refusal, c *policy.Caller) (Action, bool) {
	if !s.call.API.Produces() || !s.rewritable() {
		return Pause, false
	}
	body, q, ok := s.reread()
	to := s.plugin.policy.DegradeOf(q.Model)
	if !ok || to == nil {
		return Pause, false
	}
	if to.Static != nil {
		return s.static(to.Static, &q, why)
	}
	return s.redirect(policy.Degraded, why, c, body, func() bool {
		return s.setModel(to.Model, q.Model, body) && s.setCap(int64(to.MaxTokens), body)
	})
}

// spill sends a request to another provider, if the same path means the same there, or a tool of any kind.
func (s *Stream) spill(why *policy.Refusal, c *policy.Caller) (Action, bool) {
	if !s.rewritable() {
		return Pause, false
	}
	body, q := []byte(nil), dialect.Request{Model: s.provider.Name}
	if s.dialect != dialect.Generic {
		var ok bool
		if body, q, ok = s.reread(); !ok || !s.call.API.Metered() {
			return Pause, false
		}
	}
	to := s.plugin.policy.SpillOf(s.provider, q.Model)
	if to == nil {
		return Pause, false
	}
	caller := *c
	return s.redirect(policy.Spilled, why, &caller, body, func() bool {
		return s.setProvider(to.Provider, &caller) && s.setModel(to.Model, q.Model, body)
	})
}

// reread reads the body once more, which is all there, and the model that it is for.
func (s *Stream) reread() (body []byte, q dialect.Request, ok bool) {
	body = s.vm.host.RequestBody(0, int(s.bytes))
	q, ok = s.vm.reader.Open(s.call.API, body, s.familyOf)
	s.heedPath(&q)
	return body, q, ok
}

// redirect changes the stream to what goes elsewhere, and lets that go if it is admitted. If not, all is as before.
func (s *Stream) redirect(as policy.Verdict, why *policy.Refusal, c *policy.Caller, body []byte, change func() bool) (Action, bool) {
	was := *s
	if change() {
		s.verdict = as
		s.hinted.text = "" // it would be of the other model
		if s.body != nil {
			body = s.body
		}
		if w, ok := s.reserveAnew(body, c); ok {
			w.as, w.why = as, *why
			return s.goOn(s.vm.host.Now(), w), true
		}
	}
	*s = was
	if body != nil {
		s.reread()
	}
	return Pause, false
}
