// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// A joint is all buckets that the legs of a fan-out have to pass, each once.
type joint struct {
	legs   []Leg
	steps  []Step
	loads  []loaded
	at     []int64
	place  [MaxLegs][maxSteps]int // which of the steps is which of a leg's
	halved Tier                   // the caller's own, of which half is left to its other calls
	taken  int                    // from how many steps was taken what nobody has yet
}

func newJoint(legs []Leg) *joint {
	j := &joint{legs: legs, halved: TierTenant}
	for n := range legs {
		p := &legs[n].Path
		for i := range p.Len {
			s := &p.Steps[i]
			at := slices.IndexFunc(j.steps, func(o Step) bool { return o.Tier == s.Tier && o.Key == s.Key })
			if at < 0 {
				at = len(j.steps)
				j.steps = append(j.steps, *s)
			}
			j.place[n][i] = at
			if s.Tier == TierUser {
				j.halved = TierUser
			}
		}
	}
	j.loads, j.at = make([]loaded, len(j.steps)), make([]int64, len(j.steps))
	return j
}

// within says whether no leg has more calls than most, if k of the first leg's are reserved.
func (j *joint) within(k, most int64) bool {
	for n := range j.legs {
		if j.legs[n].calls(k, j.legs[0].Calls) > most {
			return false
		}
	}
	return true
}

// cost is what is taken from a step, if k of the first leg's calls are reserved.
func (j *joint) cost(step int, k int64) (c Cost) {
	for n := range j.legs {
		g := &j.legs[n]
		for i := range g.Path.Len {
			if j.place[n][i] == step {
				c = c.Plus(g.Each.Times(g.calls(k, j.legs[0].Calls)))
			}
		}
	}
	return c
}

// needs is what a step must have for that cost: twice as much where half is left, to the caller's other calls or to all who share a
// tool, a model, an environment. Only a request tree may reserve all that it has.
func (j *joint) needs(step int, c Cost) Cost {
	switch j.steps[step].Tier {
	case j.halved, TierTool, TierProvider, TierEnvironment:
		return c.Times(2)
	}
	return c
}

func (j *joint) shadow() bool { return j.legs[0].Path.Shadow }

func (l *Ledger) loadJoint(now int64, j *joint) {
	for i := range j.steps {
		l.load(now, &j.steps[i], &j.loads[i])
	}
}

// checkJoint says whether k calls of the first leg, with their part of the others, would be admitted.
func (l *Ledger) checkJoint(now int64, j *joint, k int64, d *Decision) bool {
	for i := range j.steps {
		cost := j.needs(i, j.cost(i, k))
		l.check(now, &j.steps[i], &j.loads[i], &cost, j.shadow(), d)
	}
	return d.Verdict == Admit
}

// takeJoint takes all calls from all steps, which were loaded and checked, or none.
func (l *Ledger) takeJoint(now int64, j *joint, d *Decision) {
	for i := range j.steps {
		ok := false
		cost := j.cost(i, j.legs[0].Calls)
		needs := j.needs(i, cost)
		if j.at[i], ok = l.takeFrom(now, &j.steps[i], &j.loads[i], &needs, &cost, j.shadow(), d); ok {
			j.taken = i + 1
			continue
		}
		for j.taken > 0 {
			j.taken--
			k := j.taken
			r := Reservation{Cost: j.cost(k, j.legs[0].Calls)}
			r.path.Len, r.path.Steps[0], r.at[0], r.spill[0] = 1, j.steps[k], j.at[k], j.loads[k].spill
			l.giveBack(now, &r)
		}
		return
	}
}

// letGo is for what was taken when something fails before anybody has it: no calls of it are in flight.
func (j *joint) letGo(l *Ledger) {
	for i := range j.taken {
		if s := &j.steps[i]; s.Limit.InFlight > 0 {
			l.addCalls(l.heldOf(s, j.loads[i].spill), s, j.loads[i].spill, -j.cost(i, j.legs[0].Calls).Requests)
		}
	}
}

// reservations are what was taken, by leg.
func (j *joint) reservations() []Reservation {
	legs := make([]Reservation, len(j.legs))
	for n := range legs {
		r, g := &legs[n], &j.legs[n]
		r.Cost, r.path = g.Each.Times(g.Calls), g.Path
		r.path.Part = nil
		for i := range g.Path.Len {
			r.at[i], r.spill[i] = j.at[j.place[n][i]], j.loads[j.place[n][i]].spill
		}
	}
	return legs
}
