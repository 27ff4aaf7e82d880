// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/weirproxy/weir/policy"
)

// A Notice is something in a policy that is accepted but worth saying.
type Notice struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Path   string `json:"path"`
	Text   string `json:"text"`
}

func (n Notice) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", n.File, n.Line, n.Column, n.Path, n.Text)
}

func (r *reader) notice(path, text string) {
	at := r.near(path)
	file, line := r.where(at)
	r.notices = append(r.notices, Notice{file, line, at.column, path, text})
}

// sorted gives the notices by line.
func (r *reader) sorted() []Notice {
	slices.SortStableFunc(r.notices, func(a, b Notice) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	return r.notices
}

// advise notes what a correct policy may not have meant.
func (r *reader) advise(s *policy.Spec, p *policy.Policy) {
	for i, t := range s.Trust {
		if t == "all" {
			r.notice(item("trust", i), "whoever reaches Envoy may call itself any tenant; for more than a try list peers or networks")
		}
	}
	for name, p := range s.Providers {
		r.upstream(policy.Join(policy.Join("providers", name), "upstream"), cmp.Or(p.Dialect, name), p.Upstream)
		path := policy.Join(policy.Join("providers", name), "models")
		if _, ok := p.Models["*"]; !ok && len(p.Models) > 0 {
			r.notice(path, `a model without an entry has no limit at this provider; an entry "*" is for all others`)
		}
		for model, l := range p.Models {
			r.unreached(policy.Join(path, model), l)
			r.unpriced(policy.Join(path, model), l, s)
			r.unreset(policy.Join(path, model), l)
		}
		if p.Stream.IncludeUsage == "add" && cmp.Or(p.Dialect, name) != "openai" {
			r.notice(policy.Join(policy.Join(policy.Join("providers", name), "stream"), "include_usage"), "does nothing here; only streams of the dialect openai are asked for their usage")
		}
	}
	r.probed(s)
	r.elsewhere(s, p)
	r.classes(s, p)
	r.unsplit(p)
	if s.Secret == "" {
		r.unkeyed(&s.Who)
	}
	if len(s.Trust) == 0 {
		r.nobody(s, &p.Who)
	}
	r.tier(s, "limits.tenant", s.Limits.Tenant)
	r.tier(s, "limits.user", s.Limits.User)
	r.tier(s, "limits.tool", s.Limits.Tool)
	for name, e := range s.Limits.Environment {
		r.tier(s, "limits.environment", map[string]*policy.LimitSpec{name: &e.LimitSpec})
	}
}

// probed says what becomes of limits that are to be found where nobody can look.
func (r *reader) probed(s *policy.Spec) {
	for name, p := range s.Providers {
		for model, l := range p.Models {
			if l != nil && l.Probe && l.RPM != nil && (l.TPM != nil || l.ITPM != nil || l.OTPM != nil) {
				r.notice(policy.Join(policy.Join(policy.Join(policy.Join("providers", name), "models"), model), "probe"), "does nothing here; requests and tokens have their limits")
			}
		}
	}
}

// tier notes what is of no use in the limits of a tier.
func (r *reader) tier(s *policy.Spec, path string, limits map[string]*policy.LimitSpec) {
	for name, l := range limits {
		path := policy.Join(path, name)
		r.unreached(path, l)
		r.unpriced(path, l, s)
		r.unreset(path, l)
		if l.MaxOutput != nil {
			r.notice(policy.Join(path, "max_output"), "does nothing here; it belongs to a provider's models")
		}
	}
}

// unsplit notes limits of models that are too small for each class with a share to have a part.
func (r *reader) unsplit(p *policy.Policy) {
	shares := p.Shares()
	for _, pr := range p.Providers {
		for _, m := range pr.Models.Values() {
			for _, meter := range m.Limit.Meters {
				if shares != nil && meter.IsRate() && !meter.Splits(shares) {
					path := policy.Join(policy.Join(policy.Join("providers", pr.Name), "models"), m.Pattern)
					r.notice(policy.Join(path, meter.Dimension.String()), "too small to be split: classes have no shares of it, and all draw on all of it")
				}
			}
		}
	}
}

// unreset notes a time at which nothing begins anew.
func (r *reader) unreset(path string, l *policy.LimitSpec) {
	fixed := l.Window != nil && l.Window.Kind == policy.Fixed
	if l.Reset != nil && !fixed && l.RPD == nil && l.TPD == nil && l.USDPerDay == 0 && l.USDPerMonth == 0 {
		r.notice(policy.Join(path, "reset"), "does nothing here: no limit is of a day or a month, and the window is not fixed")
	}
}

// unpriced notes limits in money where nothing has a price.
func (r *reader) unpriced(path string, l *policy.LimitSpec, s *policy.Spec) {
	if len(s.Prices) > 0 {
		return
	}
	if l.USDPerDay > 0 {
		r.notice(policy.Join(path, "usd_per_day"), "nothing costs anything until prices says so")
	}
	if l.USDPerMonth > 0 {
		r.notice(policy.Join(path, "usd_per_month"), "nothing costs anything until prices says so")
	}
}

func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// unkeyed notes credentials that are hashed with a key that everybody knows.
func (r *reader) unkeyed(w *policy.WhoSpec) {
	for tier, sources := range map[string][]policy.Source{
		"environment": w.Environment, "tenant": w.Tenant, "user": w.User, "tree": w.Tree, "tool": w.Tool, "class": w.Class,
	} {
		for i, s := range sources {
			if s.Kind == policy.FromAPIKey {
				r.notice(item("who."+tier, i), "credentials are hashed with a key that everybody knows; secret sets one of your own")
			}
		}
	}
}

// unreached notes limits that a limit on a shorter time keeps from ever being reached: windows of the shorter time tile
// those of the longer. It does not hold for windows of other lengths, nor for continuous ones, which let bursts through.
func (r *reader) unreached(path string, l *policy.LimitSpec) {
	if l.Window != nil && (l.Window.Length > 0 || l.Window.Kind == policy.Continuous) {
		return
	}
	type limit struct {
		name    string
		seconds policy.Count
		count   *policy.Count
	}
	for _, unit := range [][]limit{
		{{"rps", 1, l.RPS}, {"rpm", 60, l.RPM}, {"rph", 3600, l.RPH}, {"rpd", 86400, l.RPD}},
		{{"tpm", 60, l.TPM}, {"tph", 3600, l.TPH}, {"tpd", 86400, l.TPD}},
	} {
		for i, long := range unit {
			for _, short := range unit[:i] {
				if long.count == nil || short.count == nil {
					continue
				}
				if most := *short.count * (long.seconds / short.seconds); *long.count >= most {
					r.notice(policy.Join(path, long.name), fmt.Sprintf("never reached: %s admits at most %d in that time", short.name, most))
					break
				}
			}
		}
	}
}
