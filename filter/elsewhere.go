// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// setModel puts the model's name where the old one stood: in the path, or in the body.
func (s *Stream) setModel(model, old string, body []byte) bool {
	if !s.call.API.Metered() {
		return true
	}
	if model == "" {
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
	from, api := s.provider, s.call.API
	s.from, s.fromAPI = s.dialect, api
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
	if c.Tool == policy.Unknown || s.from == dialect.Generic && c.Tool == from.Name {
		c.Tool = to.Name // as if it had been asked in the first place
	}
	return true
}

// reserveAnew estimates and reserves what goes elsewhere. It passes nobody who waits there.
func (s *Stream) reserveAnew(body []byte, c *policy.Caller) (w *waiter, ok bool) {
	p := s.plugin.policy
	var q dialect.Request
	if s.call.API.Metered() {
		r := &s.vm.reader
		if _, ok = r.Open(s.call.API, body, s.familyOf); !ok {
			return nil, false
		}
		q = r.Count()
	}
	s.heedPath(&q)
	s.asks = s.call.API.Metered() && s.mayAsk(&q)
	q.IncludeUsage = q.IncludeUsage || s.asks
	model, _ := s.provider.Models.Lookup(q.Model)
	s.noteCap(model, &q)
	now := s.vm.host.Now()
	if s.others(now, model) {
		return nil, false
	}
	var path policy.Path
	p.Path(&path, s.gated(model), c)
	s.meets(&path)
	path.Part = s.plugin.part(model, s.classIndex)
	s.rating, s.lesson = p.Rating(q.Model), lesson{}
	s.prepare(q.Model, c.Tenant)
	s.calibrate(now, &q)
	s.offered = false
	d := s.vm.ledger.Reserve(now, &path, s.cost(&path, model, &q), &s.reservation)
	s.noteShadow(&d)
	return &waiter{path: path, request: q, caller: *c, model: model}, d.Verdict == policy.Admit
}
