// SPDX-License-Identifier: Apache-2.0

package policy

// Limits that nobody knows are found by trying (`probe: true`): a control plane starts low, and raises what is used up until the
// provider says no. Meters have to have a limit, so those of probed dimensions have one above all that is likely to be found;
// what is in force the control plane says by shares. Without shares it stays at what is tried first.

// probes are the dimensions that are probed where the policy does not have them, where it starts, and where it ends. The start is
// under the smallest limits that any provider gives to who is paid.
var probes = []struct {
	dimension   Dimension
	first, most int64
}{
	{RPM, 20, 60_000},
	{TPM, 20_000, 60_000_000},
}

// modelLimit compiles the limit of a provider's model.
func (c *compiler) modelLimit(path string, s *LimitSpec) *Limit {
	if !s.Probe {
		return c.limit(path, s)
	}
	var meters []Meter
	var probed [numDimensions]bool
	known := s.counts()
	for _, p := range probes {
		if known[p.dimension] != nil || p.dimension == TPM && (s.ITPM != nil || s.OTPM != nil) {
			continue
		}
		limit := p.first
		if c.spec.Fleet.Shares {
			limit, probed[p.dimension] = p.most, true
		}
		meters = append(meters, c.meter(path, p.dimension, limit, &LimitSpec{Window: &Window{Kind: Continuous}}).Meters()...)
	}
	l := c.limitWith(path, s, meters)
	if l.probed = probed; l.Scope != FleetWide {
		c.add(Join(path, "probe"), "write scope: fleet", "what a provider gives is found for all Envoys together")
	}
	return l
}

// Probed says whether a limit of this dimension is found by trying, and what is tried first.
func (l *Limit) Probed(d Dimension) (first int64, ok bool) {
	for _, p := range probes {
		if p.dimension == d && l.probed[d] {
			return p.first, true
		}
	}
	return 0, false
}
