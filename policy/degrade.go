// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strconv"
	"strings"
)

// A DegradeSpec is what answers in place of a model whose limits refuse: a smaller model, the same with a smaller cap on its
// output, or a fixed reply.
type DegradeSpec struct {
	Model     string      `json:"model,omitempty"`
	MaxTokens Count       `json:"max_tokens,omitempty"`
	Static    *StaticSpec `json:"static,omitempty"`
}

// SetScalar reads the name of a model.
func (d *DegradeSpec) SetScalar(s string) error {
	*d = DegradeSpec{Model: s}
	return nil
}

// A StaticSpec is a fixed reply. Who reads the policy's file reads the reply's, too: the filter reads no files.
type StaticSpec struct {
	File   string `json:"file,omitempty"`
	API    string `json:"api,omitempty"`    // whose form it has
	Reply  string `json:"reply,omitempty"`  // JSON
	Stream string `json:"stream,omitempty"` // events that say the same
}

// SetScalar reads the name of a file.
func (d *StaticSpec) SetScalar(s string) error {
	*d = StaticSpec{File: s}
	return nil
}

// StaticAPIs are the APIs of which a fixed reply may have the form.
var StaticAPIs = []string{"chat", "completions", "responses", "messages", "generate"}

// Bounds of fixed replies: all policies of an Envoy's workers hold them in memory.
const (
	MaxStatic  = 64 << 10
	maxStatics = 512 << 10 // replies and streams of a policy together
)

// A SpillSpec is where requests go that the limits of another provider refuse.
type SpillSpec struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"` // its name there; without, the same
}

// SetScalar reads the name of a provider.
func (d *SpillSpec) SetScalar(s string) error {
	*d = SpillSpec{Provider: s}
	return nil
}

// A Spill is where requests of a model go instead.
type Spill struct {
	Provider *Provider
	Model    string // empty: the same
}

// substitutes compiles what becomes of requests that are degraded or spilled.
func (c *compiler) substitutes(p *Policy) {
	total := 0
	for _, model := range sortedKeys(c.spec.Degrade) {
		d := c.spec.Degrade[model]
		if problem, hint := d.problem(model); problem != "" {
			c.add(Join("degrade", model), hint, "%s", problem)
		} else if p.degrade.Add(model, d); d.Static != nil {
			total += len(d.Static.Reply) + len(d.Static.Stream)
		}
	}
	if total > maxStatics {
		c.add("degrade", "", "the fixed replies have %d bytes with their streams, at most %d", total, maxStatics)
	}
	for _, model := range sortedKeys(c.spec.Spill) {
		s := c.spec.Spill[model]
		if s == nil {
			s = new(SpillSpec)
		}
		problem, hint := badModels(model, s.Model)
		i := slices.IndexFunc(p.Providers, func(pr *Provider) bool { return pr.Name == s.Provider })
		if i < 0 {
			problem, hint = "no provider "+strconv.Quote(s.Provider), "write one of "+strings.Join(sortedKeys(c.spec.Providers), ", ")
		}
		if problem != "" {
			c.add(Join("spill", model), hint, "%s", problem)
			continue
		}
		p.spill.Add(model, &Spill{p.Providers[i], s.Model})
	}
}

// problem says what is wrong with an entry, and what to write.
func (d *DegradeSpec) problem(model string) (problem, hint string) {
	if d == nil || *d == (DegradeSpec{}) || *d == (DegradeSpec{Model: model}) {
		return "nothing else in its place", "write a smaller model, such as gpt-4o-mini, or {max_tokens: 512}, or {static: FILE}"
	}
	s := d.Static
	switch {
	case s != nil && (d.Model != "" || d.MaxTokens != 0):
		return "a fixed reply has no model and no cap", "write {static: FILE} alone"
	case s != nil && (s.Reply == "" || !slices.Contains(StaticAPIs, s.API)):
		return "no reply of a known form", "write {static: FILE}, a file with one answer of a provider as JSON"
	case s != nil && len(s.Reply) > MaxStatic:
		return "the reply is longer than 64 KiB", ""
	case d.MaxTokens > MaxUnits:
		return "max_tokens is out of range", "write {max_tokens: 512}"
	}
	return badModels(model, d.Model)
}

// badModels says what is wrong with the names of a model and of the one in its place.
func badModels(model, other string) (problem, hint string) {
	switch {
	case strings.Contains(other, "*"):
		return strconv.Quote(other) + " is a pattern", "write the name of one model"
	case model == "" || max(len(model), len(other)) > MaxName || !Printable(model+other):
		return "a name has 1 to 128 bytes and no control characters", ""
	}
	return "", ""
}

// goes checks that the policy says where what a class, a route or a tree sends elsewhere goes.
func (c *compiler) goes(path, word string) string {
	if word == "degrade" && len(c.spec.Degrade) == 0 || word == "spill" && len(c.spec.Spill) == 0 {
		c.add(path, "write "+word+": {gpt-4o: OTHER}", "the policy does not say where to")
	}
	return word
}

// DegradeOf gives what may answer in place of a model; nil if nothing may.
func (p *Policy) DegradeOf(model string) *DegradeSpec {
	d, _ := p.degrade.Lookup(model)
	return d
}

// SpillOf gives where requests for a model of a provider may go instead; nil if nowhere.
func (p *Policy) SpillOf(from *Provider, model string) *Spill {
	s, _ := p.spill.Lookup(model)
	if s == nil || s.Provider == from {
		return nil
	}
	return s
}

// RetriesSpent says whether the path is of a request tree that has used up its retries, and whose next calls are therefore for
// smaller models.
func (l *Ledger) RetriesSpent(now int64, path *Path) bool {
	for i := range path.Len {
		s := &path.Steps[i]
		if s.Tier != TierTree || !s.Limit.relieved {
			continue
		}
		r := &l.loads[i]
		l.load(now, s, r)
		for k := range r.meters {
			if m := &r.meters[k]; m.unit() == Retries && m.remaining(max(now, r.clock)) < 1 {
				return true
			}
		}
	}
	return false
}
