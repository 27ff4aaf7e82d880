// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// A Step is one bucket that a request has to pass.
type Step struct {
	Tier  Tier
	Space Space
	Key   Key
	Owner Key // of the tenant, for keys that nest in one; else the key itself
	Limit *Limit
	Since int64 // when the limit came into force, ns
}

// A Path is the buckets that a request has to pass, the narrowest first.
type Path struct {
	Steps  [maxSteps]Step
	Len    int
	Shadow bool // no limit of it refuses
	Part   Part // of the caller's class; nil: it has none

	// Central are buckets that the control plane holds. Nothing of the ledger's is about them.
	Central []Step
}

// maxSteps: an environment may have limits of its own and a share of the provider's, and who only says that it is in one is
// held to two.
const maxSteps = int(numTiers) + 3

// Add puts a bucket at the end of the path; one without a limit is left out.
func (p *Path) Add(s Step) {
	if s.Limit == nil || s.Limit.Mode == Off || p.Len == len(p.Steps) {
		return
	}
	p.Steps[p.Len] = s
	p.Len++
}

// smallest is the smallest limit of a path in a unit; forever if there is none.
func (p *Path) smallest(u Unit) int64 {
	least := int64(forever)
	of := func(steps []Step) {
		for i := range steps {
			for _, m := range steps[i].Limit.Meters {
				if m.Dimension.Unit() == u {
					least = min(least, m.Limit())
				}
			}
		}
	}
	of(p.Steps[:p.Len])
	of(p.Central)
	return least
}

// Path gives the buckets that a request has to pass, the narrowest first. m may be nil: no limit of the provider applies.
func (p *Policy) Path(to *Path, m *Model, c *Caller) {
	to.Len, to.Part, to.Central, to.Shadow = 0, nil, nil, p.Mode == Shadow
	if p.Mode == Off {
		return
	}
	if len(p.tool) > 0 {
		p.toolPath(to, c.Tool)
	}
	p.tenantPath(to, c)
	p.environmentPath(to, m, p.entry(c.Environment))
	if c.Base != "" && p.entry(c.Base) != p.entry(c.Environment) {
		p.environmentPath(to, m, p.entry(c.Base))
	}
	if m != nil {
		p.add(to, Step{Tier: TierProvider, Key: m.key, Limit: m.Limit})
	}
}

// tenantPath adds the buckets of the tree, the user and the tenant.
func (p *Policy) tenantPath(to *Path, c *Caller) {
	if !p.Uses(TierTenant) {
		return
	}
	tenant := p.Hasher.Key(TierTenant, c.Tenant)
	limit, named := limitOf(p.tenant, c.Tenant)
	space := Space{Vouched: c.Vouched || named}
	if len(p.tree) > 0 && c.Tree != "" {
		limit, _ := limitOf(p.tree, c.Tree)
		p.add(to, Step{Tier: TierTree, Space: space, Key: p.Hasher.Key(TierTree, c.Tenant, c.User, c.Tree), Owner: tenant, Limit: limit})
	}
	if len(p.user) > 0 {
		space := space
		limit, named := p.userLimit(c)
		space.Named = named
		p.add(to, Step{Tier: TierUser, Space: space, Key: p.Hasher.Key(TierUser, c.Tenant, c.User), Owner: tenant, Limit: limit})
	}
	space.Named = named
	p.add(to, Step{Tier: TierTenant, Space: space, Key: tenant, Limit: limit})
}

// userLimit gives a user's limit; named: it is the user's own.
func (p *Policy) userLimit(c *Caller) (l *Limit, named bool) {
	l = p.user[defaultName]
	if l != nil && len(p.user) == 1 {
		return l, false // mostly: without a look for names
	}
	if own := p.user[c.Tenant+"/"+c.User]; own != nil {
		return own, true
	}
	if all := p.user[c.User]; all != nil && strings.IndexByte(c.User, '/') < 0 {
		l = all
	}
	return l, false
}

// environmentPath adds an environment's own limits, and its share of those of the model.
func (p *Policy) environmentPath(to *Path, m *Model, environment string) {
	if l := p.environment[environment]; l != nil {
		p.add(to, Step{Tier: TierEnvironment, Key: p.Hasher.Key(TierEnvironment, environment), Limit: l})
	}
	if m == nil {
		return
	}
	if e := m.environments[environment]; e != nil {
		p.add(to, Step{Tier: TierEnvironment, Key: e.key, Limit: e.limit})
	}
}

// limitOf gives the limit of a name, or the one for all that have none; named: it is its own.
func limitOf(limits map[string]*Limit, name string) (l *Limit, named bool) {
	if l = limits[name]; l != nil && name != defaultName {
		return l, true
	}
	return limits[defaultName], false
}

func (p *Policy) add(to *Path, s Step) {
	if s.Owner == 0 {
		s.Owner = s.Key
	}
	s.Space.Tier, s.Space.Slots = s.Tier, p.slots[s.Tier]
	s.Since = p.Since
	if s.Limit != nil && s.Limit.central != nil {
		whole := s
		whole.Limit = s.Limit.central
		if to.Central = append(to.Central, whole); s.Tier != TierProvider {
			return
		}
	}
	to.Add(s) // a provider's has a gate in any case
}
