// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/filter"
	"github.com/weirproxy/weir/policy"
)

// An explanation is what weir explain prints.
type explanation struct {
	Mode     string       `json:"mode"`
	Path     string       `json:"path"`
	Provider string       `json:"provider,omitempty"`
	API      string       `json:"api,omitempty"`
	Model    string       `json:"model,omitempty"`
	Entry    string       `json:"entry,omitempty"` // of the provider's models
	Class    string       `json:"class,omitempty"`
	OnLimit  string       `json:"on_limit,omitempty"`
	Caller   callerNames  `json:"caller"`
	Cost     *costs       `json:"cost,omitempty"` // null: nothing is counted
	Limits   []limitMet   `json:"limits"`
	First    outcome      `json:"decision"` // on buckets of which nothing is used
	AtOnce   int          `json:"at_once,omitempty"`
	By       *refusalSaid `json:"refused_by,omitempty"`
	Then     *outcome     `json:"then,omitempty"` // when so many were admitted
}

type callerNames struct {
	Environment string `json:"environment,omitempty"`
	Tenant      string `json:"tenant,omitempty"`
	User        string `json:"user,omitempty"`
	Tree        string `json:"tree,omitempty"`
	Tool        string `json:"tool,omitempty"`
}

// costs are what is reserved, and where the figures come from.
type costs struct {
	Requests   int64   `json:"requests"`
	Input      int64   `json:"input_tokens"`
	InputFrom  string  `json:"input_from"`
	Output     int64   `json:"output_tokens"`
	OutputFrom string  `json:"output_from"`
	Retries    int64   `json:"retries,omitempty"`
	USD        float64 `json:"usd"`
	Prices     *prices `json:"prices_per_million,omitempty"`
}

type prices struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
}

// A limitMet is one limit on the request's path.
type limitMet struct {
	Tier      string  `json:"tier"`
	Key       string  `json:"key"`
	Dimension string  `json:"dimension"`
	Limit     int64   `json:"limit"`
	WindowS   float64 `json:"window_s"` // 0: in flight, or a tree's budget
	Kind      string  `json:"kind,omitempty"`
	Burst     int64   `json:"burst,omitempty"` // of it at once
	Need      int64   `json:"need"`
	Mode      string  `json:"mode"`
}

// A refusalSaid is the limit that refuses first.
type refusalSaid struct {
	Reason    string  `json:"reason"`
	Tier      string  `json:"tier"`
	Dimension string  `json:"dimension"`
	Limit     int64   `json:"limit"`
	WaitS     float64 `json:"wait_s"`
	OfClass   bool    `json:"of_class,omitempty"` // it is what the request's class may take of the limit
}

// request notes what the request is.
func (e *explanation) request(p *policy.Policy, c *filter.Considered) {
	e.Provider, e.API, e.Model = c.Provider.Name, c.API.String(), c.Request.Model
	if c.Model != nil {
		e.Entry = c.Model.Pattern
	}
	if p.Classed() {
		e.Class = c.Class.Name
	}
	e.OnLimit = c.Class.OnLimit.String()
	e.Caller = callerNames{c.Caller.Environment, c.Caller.Tenant, c.Caller.User, c.Caller.Tree, c.Caller.Tool}
}

// cost notes what is reserved. Nothing is reckoned here: what an amount comes from is told by what it is equal to.
func (e *explanation) cost(p *policy.Policy, c *filter.Considered) {
	k := &costs{Requests: c.Cost.Requests, Input: c.Cost.Input, Output: c.Cost.Output, Retries: c.Cost.Retries, USD: dollars(c.Cost.Spend)}
	e.Cost = k
	if !c.API.Metered() {
		k.InputFrom, k.OutputFrom = "none: requests are counted", "none: requests are counted"
		return
	}
	k.InputFrom, k.OutputFrom = inputFrom(&c.Request), outputFrom(p, c)
	const million = 1_000_000
	in, out := c.Rating.Cost(policy.TokenCounts{Input: million}), c.Rating.Cost(policy.TokenCounts{Output: million})
	if in.Spend+out.Spend > 0 {
		k.Prices = &prices{dollars(in.Spend), dollars(out.Spend)}
	}
}

func dollars(micro int64) float64 { return float64(micro) / 1e6 }

func inputFrom(q *dialect.Request) string {
	switch q.How {
	case dialect.Exact:
		return "counted exactly (" + q.Family.String() + ")"
	case dialect.Estimate:
		return "estimated by family (" + q.Family.String() + "); a running filter calibrates it by the answers"
	case dialect.Calibrated:
		return "estimated by family (" + q.Family.String() + "), calibrated"
	}
	return "by the length of the body"
}

func outputFrom(p *policy.Policy, c *filter.Considered) string {
	switch n := c.Cost.Output; {
	case !c.API.Produces():
		return "none: the API produces no text"
	case n > c.Request.Output && n == c.Request.Least:
		return "the least that the request asks for"
	case c.Request.Output >= 0:
		return "declared by the request"
	case n == p.Output:
		return "output.default of the policy"
	case c.Model != nil && n == c.Model.MaxOutput:
		return "max_output of the model"
	}
	return "undeclared: what the smallest limit of the path leaves room for"
}

// limits notes the limits of the path, the narrowest tier first.
func (e *explanation) limits(p *policy.Policy, c *filter.Considered) {
	e.Limits = []limitMet{}
	for i := range c.Path.Len {
		s := &c.Path.Steps[i]
		m := limitMet{Tier: s.Tier.String(), Key: keyName(p, s, c), Mode: max(s.Limit.Mode, p.Mode).String()}
		for _, meter := range s.Limit.Meters {
			m := m
			m.Dimension, m.Limit, m.WindowS = meter.Dimension.String(), meter.Limit(), meter.Window().Seconds()
			m.Kind, m.Burst, m.Need = meter.Kind.String(), meter.Burst(), c.Cost.In(meter.Dimension.Unit())
			if meter.Kind == policy.Stock {
				m.WindowS = 0
			}
			e.Limits = append(e.Limits, m)
		}
		if s.Limit.InFlight > 0 {
			m.Dimension, m.Limit, m.Need = policy.InFlight.String(), s.Limit.InFlight, c.Cost.Requests
			e.Limits = append(e.Limits, m)
		}
	}
}

// keyName is whose bucket it is.
func keyName(p *policy.Policy, s *policy.Step, c *filter.Considered) string {
	who, model := &c.Caller, ""
	if c.Model != nil {
		model = c.Provider.Name + " " + c.Model.Pattern
	}
	switch s.Tier {
	case policy.TierUser:
		return who.Tenant + "/" + who.User
	case policy.TierTree:
		return who.Tenant + "/" + who.User + "/" + who.Tree
	case policy.TierProvider:
		return model
	case policy.TierEnvironment:
		for _, name := range []string{who.Environment, who.Base, "default"} {
			if s.Key == p.Hasher.Key(s.Tier, name) {
				return name
			}
			if c.Model != nil && s.Key == p.Hasher.Key(s.Tier, name, c.Provider.Name, c.Model.Pattern) {
				return name + ", its share of " + model
			}
		}
	}
	return who.Key(s.Tier)
}
