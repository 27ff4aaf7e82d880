// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"cmp"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/tokens"
)

// reserveFanout reserves the sum of what a planner is about to send, or says how much of it would fit.
func (s *Stream) reserveFanout(body []byte) Action {
	p := s.plugin.policy
	q, field, wrong := readFanout(body, &p.Who)
	if wrong != "" {
		return s.problem(400, "bad_request", field, wrong)
	}
	r := &s.vm.reader
	r.Open(dialect.Requests, body, func(string) tokens.Family { return 0 })
	ask := asker{host: s.vm.host, policy: p, stream: s, member: s.vm.memberOf}
	legs, field, wrong := s.legs(&ask, q)
	if wrong != "" {
		return s.problem(400, "bad_request", field, wrong)
	}
	var id policy.FanoutID
	if !s.vm.host.Random(id[:]) {
		return s.refuse(policy.Internal, "")
	}
	d := s.vm.ledger.OpenFanout(s.vm.host.Now(), id, ask.owner(), legs, &p.Fanout)
	if d.Verdict == policy.Deny {
		return s.refuseFanout(&d, q, &ask)
	}
	s.noteShadow(&d)
	s.vm.count(&s.vm.metrics.fanouts, metricFanouts, "decision", policy.Admit.String())
	return s.tell(200, policy.Admit, q.granted(id, legs, &p.Fanout))
}

// granted says what was reserved.
func (q *fanoutRequest) granted(id policy.FanoutID, legs []policy.Leg, b *policy.FanoutBounds) []byte {
	var o object
	o.word("reservation", hex.EncodeToString(id[:]))
	o.word("header", branchHeader)
	o.number("expires_in_ms", b.TTL.Milliseconds())
	o.number("branches", q.branches)
	sum := policy.Cost{}
	for i := range legs {
		sum = sum.Plus(legs[i].Each.Times(legs[i].Calls))
	}
	o.number("calls", sum.Requests)
	o.number("tokens", sum.In(policy.Tokens))
	o.open("tools")
	for _, t := range q.tools {
		o.number(t.name, t.calls)
	}
	o.close("}}")
	return o
}

// refuseFanout says why, and how many branches would fit.
func (s *Stream) refuseFanout(d *policy.Decision, q *fanoutRequest, a *asker) Action {
	r := &d.Refusal
	s.countDecision(policy.Deny, metricFanouts, r)
	s.logged.refusal = *r
	var o object
	o.open("error")
	o.word("code", r.Reason.String())
	headers := [][2]string{{"x-weir-reason", r.Reason.String()}, {"x-should-retry", strconv.FormatBool(r.Reason == policy.CASContention)}}
	switch {
	case r.Reason == policy.CASContention:
		headers = append(headers, [2]string{"retry-after", "1"})
		o.word("message", "Too many fan-outs at once: try again in a second.")
	case r.Limit > 0:
		o.word("tier", r.Tier.String())
		o.word("dimension", r.Dimension.String())
		c := a.caller()
		o.word("message", strings.TrimSpace("The "+r.Tier.String()+" limit ("+r.Dimension.String()+") has no room for all of it now. fits says for how many "+q.unit()+", with their part of the rest. "+unnamed(&c, r.Tier)))
	case r.Tier == policy.TierTree:
		o.word("message", "As many fan-outs are open as there may be in one request tree: use them up, or wait until they expire.")
	default:
		o.word("message", "There may be "+strconv.FormatInt(s.plugin.policy.Fanout.Most, 10)+" calls of one kind in a fan-out at most.")
	}
	o.close("}")
	o.number("fits", d.Fits)
	o.number("asked", q.first())
	o.close("}")
	return s.tell(r.Reason.Status(), policy.Deny, o, headers...)
}

// legs are the calls that are asked for, by kind.
func (s *Stream) legs(a *asker, q *fanoutRequest) (legs []policy.Leg, field, wrong string) {
	legs = make([]policy.Leg, 0, 1+len(q.tools))
	if q.branches > 0 {
		pr := s.plugin.providerNamed(q.provider, false)
		switch {
		case pr == nil:
			return nil, "provider", "Name one of the policy's providers."
		case s.plugin.providers[pr] == dialect.Generic:
		case q.model == "":
			return nil, "model", "Name the model that the branches use."
		case q.input < 0:
			return nil, "input_tokens", "Say how many tokens of input a branch has."
		}
		legs = legs[:1]
		s.leg(a, pr, q, "", &legs[0])
	}
	for _, t := range q.tools {
		pr := s.plugin.providerNamed(t.provider, true)
		if t.provider == "" {
			pr = cmp.Or(s.plugin.providerNamed(t.name, true), pr)
		}
		if pr == nil {
			return nil, "tools", `Say through which provider a tool is called: {"TOOL":{"calls":8,"provider":"NAME"}}.`
		}
		legs = legs[:len(legs)+1]
		s.leg(a, pr, &fanoutRequest{branches: t.calls}, t.name, &legs[len(legs)-1])
	}
	return legs, "", ""
}

// leg is the calls of one kind, as decide would see them.
func (s *Stream) leg(a *asker, pr *policy.Provider, q *fanoutRequest, tool string, g *policy.Leg) {
	p := s.plugin.policy
	s.provider, s.dialect = pr, s.plugin.providers[pr]
	c := a.caller()
	if tool != "" {
		c.Tool = p.Hasher.Shorten(tool)
	}
	model, _ := pr.Models.Lookup(q.model)
	p.Path(&g.Path, s.gated(model), &c)
	g.Calls, g.Each = q.branches, policy.Cost{Requests: 1}
	if s.dialect != dialect.Generic {
		rating := p.Rating(q.model)
		g.Each = rating.Cost(policy.TokenCounts{Input: q.input, Output: p.OutputBound(&g.Path, model, q.input, q.output)})
	}
}

// providerNamed finds a provider; without a name it is the only one of its kind, generic or not, if there is just one.
func (p *Plugin) providerNamed(name string, generic bool) (found *policy.Provider) {
	for _, pr := range p.policy.Providers {
		kind := p.providers[pr] == dialect.Generic
		switch {
		case name != "":
			if pr.Name == name && (kind || !generic) {
				return pr
			}
		case kind == generic && found != nil:
			return nil
		case kind == generic:
			found = pr
		}
	}
	return found
}
