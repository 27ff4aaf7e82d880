// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Limits of scope central are held by the control plane, which is asked for each call. Here is what of them lies with the Envoy: a
// provider's gate, and a floor that stands in for them while nobody can be asked.

// centralize takes limits of scope central out of those that this Envoy holds.
func (p *Policy) centralize() {
	for _, e := range p.Entries() {
		if l := e.Limit; l.Scope == Central && l.Mode != Off && (len(l.Meters) > 0 || l.InFlight > 0) {
			whole := *l
			whole.centralFloor = whole.floorOf(&p.Fleet)
			*l = *NewLimit(l.Mode, 0)
			l.Scope, l.central = Central, &whole
		}
	}
}

// Central is the limit as the control plane holds it; nil if this Envoy does.
func (l *Limit) Central() *Limit { return l.central }

// floorOf is this Envoy's part of the limit without the control plane; nil if that is less than one unit of any dimension.
func (l *Limit) floorOf(f *FleetTerms) *Limit {
	part := func(n int64) int64 { return mulDivDown(n, int64(f.Floor), int64(Whole)*f.MaxEnvoys) }
	if l.InFlight > 0 && part(l.InFlight) < 1 {
		return nil
	}
	for _, m := range l.Meters {
		if part(m.Limit()) < 1 {
			return nil
		}
	}
	return l.scale(part)
}

// floorSalt makes the key of a floor: the bucket of the key itself, a provider's gate, is another one.
const floorSalt Key = 0x9e3779b97f4a7c15

// Floor gives the buckets that stand in for the central ones of a path.
func (p *Path) Floor() (floor Path) {
	floor.Shadow = p.Shadow
	for _, s := range p.Central {
		if s.Limit = s.Limit.centralFloor; s.Limit != nil {
			s.Key = max(s.Key^floorSalt, 1)
			floor.Add(s)
		}
	}
	return floor
}

// WithoutFloor is the refusal of a path of which a central limit has no floor; its Reason is None if all have one.
func (p *Path) WithoutFloor(cost *Cost) Refusal {
	for i := range p.Central {
		if s := &p.Central[i]; s.Limit.centralFloor == nil && s.Limit.Mode == Enforce && !p.Shadow {
			d := InFlight
			if len(s.Limit.Meters) > 0 {
				d = s.Limit.Meters[0].Dimension
			}
			return p.NoFloor(&Refusal{Tier: s.Tier, Dimension: d, Need: cost.In(d.Unit())})
		}
	}
	return Refusal{}
}

// NoFloor is what a caller hears of a refusal by a floor: the limit that it stands in for has no part left for this Envoy.
func (p *Path) NoFloor(by *Refusal) Refusal {
	f := *by
	f.Reason, f.Wait = NoShare, min(max(f.Wait, time.Millisecond), time.Second)
	for _, s := range p.Central {
		if s.Tier != f.Tier {
			continue
		}
		if f.Dimension == InFlight && s.Limit.InFlight > 0 {
			f.Limit = s.Limit.InFlight
		}
		for _, m := range s.Limit.Meters {
			if m.Dimension == f.Dimension && m.sub == 0 {
				f.Limit, f.Burst, f.Window = m.Limit(), m.Burst(), m.Window()
			}
		}
	}
	return f
}
