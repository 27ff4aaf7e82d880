// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"

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
	p := s.plugin.policy
	if !p.Relieves || s.retries() > 0 || !s.vm.ledger.RetriesSpent(now, path) {
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
	body = s.vm.host.RequestBody(int(s.bytes))
	q, ok = s.vm.reader.Open(s.call.API, body, s.family)
	if s.call.Model != "" {
		q.Model = s.call.Model
	}
	q.Stream = q.Stream || s.call.Stream
	return body, q, ok
}

// redirect changes the stream to what goes elsewhere, and lets that go if it is admitted. If not, all is as before.
func (s *Stream) redirect(as policy.Verdict, why *policy.Refusal, c *policy.Caller, body []byte, change func() bool) (Action, bool) {
	was := *s
	if change() {
		s.verdict = as
		if s.body != nil {
			body = s.body
		}
		if q, ok := s.reserveAnew(body, c); ok {
			s.vm.countDecision(as, metricRequests, why)
			s.logged.refusal, s.logged.model = *why, s.model
			return s.send(q), true
		}
	}
	*s = was
	if body != nil {
		s.reread()
	}
	return Pause, false
}

// setModel puts the model's name where the old one stood: in the path, or in the body.
func (s *Stream) setModel(model, old string, body []byte) bool {
	if model == "" || !s.call.API.Metered() {
		s.model = strings.Clone(old)
		return true
	}
	s.model = model
	if s.call.Model != "" {
		s.call.Model = model
		s.path = s.dialect.SetPathModel(s.method, s.path, model)
		s.moved = true
		return s.path != ""
	}
	s.body = dialect.SetModel(body, model)
	return s.body != nil
}

func (s *Stream) setCap(most int64, body []byte) bool {
	if most == 0 {
		return true
	}
	if s.body != nil {
		body = s.body
	}
	s.body = dialect.SetCap(s.dialect, s.call.API, body, most)
	return s.body != nil
}

// setProvider makes the request one to another provider, by its path.
func (s *Stream) setProvider(to *policy.Provider, c *policy.Caller) bool {
	from, fromDialect, api := s.provider, s.dialect, s.call.API
	_, rest := s.plugin.policy.ProviderOf(s.path)
	path := to.Prefix + rest
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	s.provider, s.path, s.moved = to, path, true
	s.dialect = s.plugin.providers[to]
	s.call = s.callOf(rest)
	if s.dialect != dialect.Generic {
		return s.call.API == api && api.Metered()
	}
	if c.Tool == policy.Unknown || fromDialect == dialect.Generic && c.Tool == from.Name {
		c.Tool = to.Name // as if it had been asked in the first place
	}
	return true
}

// reserveAnew estimates and reserves what goes elsewhere. It passes nobody who waits there.
func (s *Stream) reserveAnew(body []byte, c *policy.Caller) (q dialect.Request, ok bool) {
	p := s.plugin.policy
	if s.call.API.Metered() {
		r := &s.vm.reader
		if _, ok = r.Open(s.call.API, body, s.family); !ok {
			return q, false
		}
		q = r.Count()
	}
	if s.call.Model != "" {
		q.Model = s.call.Model
	}
	q.Stream = q.Stream || s.call.Stream
	s.asks = s.call.API.Metered() && s.mayAsk(&q)
	q.IncludeUsage = q.IncludeUsage || s.asks
	model, _ := s.provider.Models.Lookup(q.Model)
	if s.others(model) {
		return q, false
	}
	var path policy.Path
	p.Path(&path, model, c)
	s.rating, s.lesson = p.Rating(q.Model), lesson{}
	s.prepare(q.Model, c.Tenant)
	now := s.vm.host.Now()
	s.calibrate(now, &q)
	d := s.vm.ledger.Reserve(now, &path, s.cost(&path, model, &q), &s.reservation)
	if d.Shadow.Reason != policy.None {
		s.vm.countDenied(metricShadow, &d.Shadow)
		s.logged.shadow = d.Shadow
	}
	return q, d.Verdict == policy.Admit
}

// static answers with a fixed reply, if it has the form of the API that was asked.
func (s *Stream) static(to *policy.StaticSpec, q *dialect.Request, why *policy.Refusal) (Action, bool) {
	kind, body := "application/json", to.Reply
	switch {
	case to.API != s.call.API.String():
		return Pause, false
	case q.Stream && s.call.API == dialect.Generate && !strings.Contains(s.path, "alt=sse"):
		body = "[" + body + "]"
	case q.Stream:
		kind, body = "text/event-stream", to.Stream
	}
	if body == "" {
		return Pause, false
	}
	s.phase, s.verdict, s.status, s.logged.refusal = refused, policy.Degraded, 200, *why
	s.vm.countDecision(policy.Degraded, metricRequests, why)
	s.vm.host.Reply(200, [][2]string{{"content-type", kind}, {"x-weir-decision", policy.Degraded.String()}}, []byte(body))
	s.headers = nil
	return Pause, true
}

// tellInstead tells the caller in headers of the answer where its request went.
func (s *Stream) tellInstead() {
	if s.verdict == policy.Admit {
		return
	}
	h := s.vm.host
	h.SetResponseHeader("x-weir-decision", s.verdict.String())
	if s.model != "" && policy.Printable(s.model) {
		h.SetResponseHeader("x-weir-model", s.model)
	}
	if s.verdict == policy.Spilled {
		h.SetResponseHeader("x-weir-provider", s.provider.Name)
	}
}
