// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
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
		d, path := c.spec.Degrade[model], Join("degrade", model)
		c.name(path, model, MaxName)
		c.substitute(path, model, d.Model)
		switch s := d.Static; {
		case s != nil && (d.Model != "" || d.MaxTokens != 0):
			c.add(path, "write {static: FILE} alone", "a fixed reply has no model and no cap")
		case s != nil:
			total += len(s.Reply) + len(s.Stream)
			c.static(Join(path, "static"), s)
		case d.Model == "" && d.MaxTokens == 0, d.Model == model && d.MaxTokens == 0:
			c.add(path, "write a smaller model, such as gpt-4o-mini, or {max_tokens: 512}, or {static: FILE}", "nothing else in its place")
		case d.MaxTokens > MaxUnits:
			c.add(Join(path, "max_tokens"), "write 512", "%d is more than %d", d.MaxTokens, int64(MaxUnits))
		}
		p.degrade.Add(model, &d)
	}
	if total > maxStatics {
		c.add("degrade", "", "the fixed replies have %d bytes with their streams, at most %d", total, maxStatics)
	}
	for _, model := range sortedKeys(c.spec.Spill) {
		s, path := c.spec.Spill[model], Join("spill", model)
		c.name(path, model, MaxName)
		c.substitute(path, model, s.Model)
		i := slices.IndexFunc(p.Providers, func(pr *Provider) bool { return pr.Name == s.Provider })
		if i < 0 {
			c.add(path, "write one of "+strings.Join(sortedKeys(c.spec.Providers), ", "), "no provider %q", s.Provider)
			continue
		}
		p.spill.Add(model, &Spill{p.Providers[i], s.Model})
	}
	c.needed(p)
}

// substitute checks the name of a model that is written into requests.
func (c *compiler) substitute(path, model, name string) {
	if strings.Contains(name, "*") {
		c.add(path, "write the name of one model", "%q is a pattern", name)
	}
	if name != "" {
		c.name(path, name, MaxName)
	}
}

func (c *compiler) static(path string, s *StaticSpec) {
	switch {
	case s.Reply == "":
		c.add(path, "write the name of a file", "no reply")
	case !slices.Contains(StaticAPIs, s.API):
		c.add(path, "write one of "+strings.Join(StaticAPIs, ", "), "a reply of an unknown form %q", s.API)
	case len(s.Reply) > MaxStatic:
		c.add(path, "", "the reply has %d bytes, at most %d", len(s.Reply), MaxStatic)
	}
}

// needed checks that what classes and trees ask for is there.
func (c *compiler) needed(p *Policy) {
	check := func(path, word string) {
		switch {
		case word == "degrade" && len(c.spec.Degrade) == 0:
			c.add(path, "write degrade: {gpt-4o: gpt-4o-mini}", "degrade does not say to what")
		case word == "spill" && len(c.spec.Spill) == 0:
			c.add(path, "write spill: {gpt-4o: OTHER_PROVIDER}", "spill does not say where to")
		}
	}
	for _, name := range sortedKeys(c.spec.Classes) {
		check(Join(Join("classes", name), "on_limit"), c.spec.Classes[name].OnLimit)
	}
	for i, r := range c.spec.Routes {
		check(routePath(i)+".on_limit", r.OnLimit)
	}
	p.relieved = map[*Limit]bool{}
	for _, name := range sortedKeys(c.spec.Limits.Tree) {
		if s := c.spec.Limits.Tree[name]; s != nil && s.OnRetriesSpent != "" {
			path := Join(Join("limits.tree", name), "on_retries_spent")
			if c.oneOf(path, s.OnRetriesSpent, "deny", "deny", "degrade") == "degrade" {
				check(path, s.OnRetriesSpent)
				p.relieved[p.tree[name]] = true
			}
		}
	}
}

// DegradeOf gives what may answer in place of a model; nil if nothing may.
func (p *Policy) DegradeOf(model string) *DegradeSpec {
	d, _ := p.degrade.Lookup(model)
	if d == nil || d.Static == nil && d.MaxTokens == 0 && d.Model == model {
		return nil
	}
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
func (l *Ledger) RetriesSpent(now int64, p *Policy, path *Path) bool {
	for i := range path.Len {
		s := &path.Steps[i]
		if s.Tier != TierTree || !p.relieved[s.Limit] {
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

// Relieves says whether any request tree is sent to smaller models when its retries are spent.
func (p *Policy) Relieves() bool { return len(p.relieved) > 0 }
