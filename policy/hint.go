// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// A Remainder is what one limit of a caller leaves, in what a planner can act on: nothing of how the limit is kept.
type Remainder struct {
	Tier      Tier
	Dimension Dimension
	Limit     int64
	Window    time.Duration // 0: of a tree's whole life, or in flight
	Units     int64         // that would be admitted now, if the call's other limits have room, too; at least 0
	More      time.Duration // after which there is more than little left, if nobody uses any; 0: there is, or nobody knows
	Little    bool          // a quarter or less is left of what may be used at once
}

// A Cooling is a tool of the policy that has no room for a call now.
type Cooling struct {
	Tool string
	Wait time.Duration // after which it has, if nobody uses it; in flight a guess
}

// An Outlook is what is left for a caller, the narrowest tier first, and which tools it should leave alone for now.
type Outlook struct {
	Left    []Remainder
	Cooling []Cooling
}

// Outlook looks at what a path leaves on the caller's own tiers (tree, user, tenant), and at all tools that the policy names.
// Limits that do not refuse, being in shadow mode, say nothing. It takes nothing.
func (l *Ledger) Outlook(now int64, p *Policy, path *Path) (o Outlook) {
	r := new(loaded)
	for i := range path.Len {
		if s := &path.Steps[i]; s.Tier >= TierTree && s.Tier <= TierTenant && s.Limit.Mode == Enforce && !path.Shadow {
			l.load(now, s, r)
			o.Left = s.left(now, r, l.vm, o.Left)
		}
	}
	if p.Mode != Enforce {
		return o
	}
	for _, name := range p.namedTools {
		var tool Path
		p.toolPath(&tool, name)
		for i := range tool.Len {
			s, d, cost := &tool.Steps[i], Decision{}, Cost{Requests: 1}
			l.load(now, s, r)
			if l.check(now, s, r, &cost, false, &d); d.Verdict == Deny {
				o.Cooling = append(o.Cooling, Cooling{name, d.Refusal.Wait})
			}
		}
	}
	return o
}

// Met is what the limits of a path have left, the narrowest tier first. It takes nothing.
func (l *Ledger) Met(now int64, path *Path) (list []Remainder) {
	r := new(loaded)
	for i := range path.Len {
		l.load(now, &path.Steps[i], r)
		list = path.Steps[i].left(now, r, l.vm, list)
	}
	return list
}

// left adds what a record leaves of its limit.
func (s *Step) left(now int64, r *loaded, vm uint64, to []Remainder) []Remainder {
	now = max(now, r.clock)
	for i := range s.Limit.Meters {
		m := &r.meters[i]
		if m.id>>idSub&0xff > 0 {
			continue // a part of a window that is there already
		}
		once, units := min(m.rate.burst, m.rate.limit), m.room(now)
		if level := m.level(now); level < m.rate.burst { // a full bucket admits more than a burst, and owes the rest
			units = min(units, level)
		}
		left := Remainder{
			Tier: s.Tier, Dimension: m.dimension(), Limit: m.rate.limit, Window: time.Duration(m.rate.window),
			Units: max(units, 0), Little: units <= once/4,
		}
		if m.kind() == Stock {
			left.Window = 0
		} else if left.Little {
			left.More = time.Duration(m.wait(now, once/4+1))
		}
		to = append(to, left)
	}
	if most := s.Limit.InFlight; most > 0 {
		n := max(most-r.inFlight(now, vm)-r.held.inFlight(), 0)
		to = append(to, Remainder{Tier: s.Tier, Dimension: InFlight, Limit: most, Units: n, Little: n <= most/4})
	}
	return to
}

// toolPath is the bucket of a tool alone.
func (p *Policy) toolPath(to *Path, tool string) {
	limit, named := limitOf(p.tool, tool)
	p.add(to, Step{Tier: TierTool, Space: Space{Named: named}, Key: p.Hasher.Key(TierTool, tool), Limit: limit})
}
