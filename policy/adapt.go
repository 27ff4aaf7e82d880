// SPDX-License-Identifier: Apache-2.0

package policy

// adapt checks how a provider's rate follows what it answers. What is not said is completed by package feedback.
func (c *compiler) adapt(path string, a AdaptSpec) AdaptSpec {
	if a.Decrease < 0 || a.Decrease >= 1 {
		c.add(Join(path, "decrease"), "write 0.7: a refusal leaves 70% of the rate", "%v is not between 0 and 1", a.Decrease)
	}
	if a.Ceiling > 0 && a.Floor > a.Ceiling {
		c.add(Join(path, "floor"), "write 10%", "above the ceiling")
	}
	a.Climb = c.oneOf(Join(path, "climb"), a.Climb, "steady", "steady", "fast")
	return a
}

// Pool is the bucket of a model at its provider.
func (m *Model) Pool(since int64) Step {
	return Step{Tier: TierProvider, Space: Space{Tier: TierProvider}, Key: m.key, Owner: m.key, Limit: m.Limit, Since: since}
}

// Key names the pool of the model.
func (m *Model) Key() Key { return m.key }

// Pools are those of all entries, and that of what matches none.
func (p *Provider) Pools() []*Model { return append(p.Models.Values(), p.Rest) }
