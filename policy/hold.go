// SPDX-License-Identifier: Apache-2.0

package policy

// MostHeld is how much of a body Envoy has to be able to hold: no more than is read, if nothing that stands behind that decides.
func (p *Policy) MostHeld() int64 {
	held := p.BodySays()
	for _, pr := range p.Providers {
		held = held || pr.PerModel
	}
	if held {
		return p.Hold
	}
	return p.Parse
}

// BodySays says whether it makes a difference who asks, by what a body says.
func (p *Policy) BodySays() bool {
	w := &p.Who
	for t, sources := range [...]*[]Source{TierTool: &w.Tool, TierTree: &w.Tree, TierUser: &w.User, TierTenant: &w.Tenant, TierEnvironment: &w.Environment} {
		if fromBody(*sources) && p.Uses(Tier(t)) {
			return true
		}
	}
	return fromBody(w.Class) && p.Classed()
}

//go:noinline
func fromBody(sources []Source) bool {
	for i := range sources {
		if sources[i].Kind == FromBody {
			return true
		}
	}
	return false
}
