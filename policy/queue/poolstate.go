// SPDX-License-Identifier: Apache-2.0

package queue

import "math/bits"

// A PoolState is the levels of all classes of one limit: a plain value that several workers can share by compare-and-swap.
type PoolState struct {
	At  int64             // in ticks: until when it has been refilled
	Own [MaxClasses]int64 // units x window; below zero it is debt
	Pot int64
}

// Full is the state of pools that nobody has used for long. now is in ns and not below 0.
func (p *Pools) Full(now int64) PoolState {
	s := PoolState{At: now / p.tick, Pot: p.pot}
	for i, c := range p.classes {
		s.Own[i] = c.burst
	}
	return s
}

// refill brings the state up to a time. A clock that goes back changes nothing.
func (p *Pools) refill(s *PoolState, at int64) {
	dt := at - s.At
	if dt <= 0 {
		return
	}
	s.At = at
	gain := times(p.direct, dt)
	for i, c := range p.classes {
		s.Own[i] += times(c.rate, dt)
		if over := s.Own[i] - c.burst; over > 0 {
			s.Own[i] = c.burst
			if !c.keep {
				gain += min(over, maxLevel)
			}
		}
	}
	s.Pot = min(s.Pot+gain, p.pot)
}

// times is a*b, at most a level that fills anything.
func times(a, b int64) int64 {
	const enough = 4 * maxLevel
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi > 0 || lo > enough {
		return enough
	}
	return int64(lo)
}

// units is n units as a level. Nobody asks for more than the limit.
func (p *Pools) units(n int64) int64 { return min(max(n, 0), p.limit) * p.window }

// Take takes n units for a class, if it may have them now.
func (p *Pools) Take(s *PoolState, now int64, class int, n int64) bool {
	p.refill(s, now/p.tick)
	c, need := &p.classes[class], p.units(n)
	own := max(s.Own[class], 0)
	switch {
	case !p.may(s, class, need):
		return false
	case c.rate == 0:
		s.Pot = p.owe(s.Pot - need)
	case own >= need || p.lends(s, class) < need-own: // enough, or full: then it owes the rest
		s.Own[class] = max(s.Own[class]-need, c.burst-p.limit*p.window)
	default:
		s.Own[class] -= own
		s.Pot -= need - own
	}
	return true
}

// owe bounds the pot's debt to a window's worth.
func (p *Pools) owe(pot int64) int64 { return min(max(pot, p.pot-p.limit*p.window), p.pot) }

// lends is what a class may borrow of the pot.
func (p *Pools) lends(s *PoolState, class int) int64 {
	c := &p.classes[class]
	if c.apart {
		return 0
	}
	return max(s.Pot-c.floor, 0)
}

// may says whether a class may have a level, in a state that is up to date.
func (p *Pools) may(s *PoolState, class int, need int64) bool {
	full := s.Own[class] >= p.classes[class].burst
	if p.classes[class].rate == 0 {
		full = s.Pot >= p.pot
	}
	return full || max(s.Own[class], 0)+p.lends(s, class) >= need
}

// Level is what a class may take now, in units; below zero it is debt.
func (p *Pools) Level(s PoolState, now int64, class int) int64 {
	p.refill(&s, now/p.tick)
	if p.classes[class].rate == 0 && s.Pot < 0 {
		return -((-s.Pot + p.window - 1) / p.window)
	}
	if own := s.Own[class]; own < 0 && p.lends(&s, class) == 0 {
		return -((-own + p.window - 1) / p.window)
	}
	return (max(s.Own[class], 0) + p.lends(&s, class)) / p.window
}

// Wait is the time in ns after which a class may have n units, if nobody else takes any before; 0: it may now. It is Never where
// a class without a share waits for a pot into which nothing runs.
func (p *Pools) Wait(s PoolState, now int64, class int, n int64) int64 {
	at, need := now/p.tick, p.units(n)
	p.refill(&s, at)
	if p.may(&s, class, need) {
		return 0
	}
	least, most := int64(0), p.longest(&s, class, need) // it may not, and it may
	if most == Never {
		return Never
	}
	for most-least > 1 {
		later := s
		middle := least + (most-least)/2
		p.refill(&later, at+middle)
		if p.may(&later, class, need) {
			most = middle
		} else {
			least = middle
		}
	}
	return (at+most)*p.tick - now
}

// longest is a time in ticks after which a class may have a level for certain: by its own rate alone, or, where it has none, when
// all buckets that run over into the pot are full, and then the pot.
func (p *Pools) longest(s *PoolState, class int, need int64) int64 {
	if c := &p.classes[class]; c.rate > 0 {
		return (min(need, c.burst) - s.Own[class] + c.rate - 1) / c.rate
	}
	into, after := p.direct, int64(0)
	for i, c := range p.classes {
		if c.rate > 0 && !c.keep {
			into += c.rate
			after = max(after, (c.burst-s.Own[i]+c.rate-1)/c.rate)
		}
	}
	if into == 0 {
		return Never
	}
	return after + (p.pot-s.Pot+into-1)/into
}

// Settle makes a take of reserved units count as actual ones. What comes back fills the class's own bucket first; what was
// used beyond is the class's debt.
func (p *Pools) Settle(s *PoolState, now int64, class int, reserved, actual int64) {
	p.refill(s, now/p.tick)
	c, back := &p.classes[class], p.units(reserved)-p.units(actual)
	if c.rate == 0 {
		s.Pot = p.owe(s.Pot + back)
		return
	}
	s.Own[class] = max(s.Own[class]+back, c.burst-p.limit*p.window)
	if over := s.Own[class] - c.burst; over > 0 {
		s.Own[class] = c.burst
		s.Pot = min(s.Pot+over, p.pot)
	}
}

// Carry gives the state for a limit that takes the place of another, from on: the same levels in units, no more than there is
// now room for, and the same debt, up to what the new limit gives in a window. A class that is new begins empty. So a change
// mints nothing.
func (p *Pools) Carry(s PoolState, now int64, from *Pools) PoolState {
	from.refill(&s, now/from.tick)
	to := PoolState{At: now / p.tick, Pot: p.owe(p.scale(s.Pot, from))}
	for i, c := range p.classes {
		if i < len(from.classes) {
			to.Own[i] = max(min(p.scale(s.Own[i], from), c.burst), c.burst-p.limit*p.window)
		}
	}
	return to
}

// scale gives a level of other pools in units x window of these, rounded down.
func (p *Pools) scale(level int64, from *Pools) int64 {
	switch {
	case from.window == p.window:
		return level
	case level < 0:
		return -((-level + from.window - 1) / from.window * p.window)
	}
	return level / from.window * p.window
}
