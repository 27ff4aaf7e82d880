// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"math"
)

var errBounds = errors.New("a name or an amount out of bounds, or a quota twice")

func (m *FromNode) check() error {
	ok := checkName(m.Node) && len(m.Policy) <= maxName && max(len(m.Asks), len(m.Draws), len(m.Seen), len(m.Learned), len(m.Ratios), len(m.Denials), len(m.Waits)) <= maxParts
	if m.Report != nil {
		ok = ok && m.Report.ok()
	}
	for i := range m.Asks {
		ok = ok && m.Asks[i].ok()
	}
	for i := range m.Draws {
		ok = ok && m.Draws[i].ok()
	}
	for i := range m.Seen {
		s := &m.Seen[i]
		ok = ok && checkName(s.Key) && checkAmounts(s.Denied, s.Queued, s.Sent, s.Answered, s.Rejected, s.Used)
		for _, o := range s.Others {
			ok = ok && checkAmounts(o.Calls)
		}
	}
	for _, l := range m.Learned {
		ok = ok && checkName(l.Key) && checkAmounts(l.Limit, l.External)
	}
	for _, r := range m.Ratios {
		ok = ok && checkAmounts(r.Weight, r.Ratio, r.Spread)
	}
	for i := range m.Denials {
		d := &m.Denials[i]
		ok = ok && len(d.Class) <= maxName && checkAmounts(d.Limit, d.Calls)
	}
	for i := range m.Waits {
		s := &m.Waits[i]
		ok = ok && len(s.Class) <= maxName && checkAmounts(s.Now) && checkAmounts(s.Within[:]...)
	}
	if !ok {
		return errBounds
	}
	return nil
}

func (r *Report) ok() bool {
	seen := make(map[string]bool, len(r.Holdings))
	for i := range r.Holdings {
		h := &r.Holdings[i]
		if seen[h.Key] || !checkName(h.Key) || !checkSums(h.Returned, h.Spent) ||
			!checkAmounts(h.Demand, h.Rate, h.Cap, h.Remembered, h.Floor) {
			return false
		}
		seen[h.Key] = true
	}
	return len(r.Holdings) <= maxParts
}

func (a *Asks) ok() bool {
	for _, k := range a.Asks {
		if !checkAmounts(k.Units) || !checkTimes(k.Patience) {
			return false
		}
	}
	return checkName(a.Key)
}

func (d *Draw) ok() bool {
	return checkName(d.Key) && checkAmounts(d.Demand, d.Want) && checkSums(d.Given, d.Used, d.Returned)
}

func checkName(s string) bool { return s != "" && len(s) <= maxName }

// checkAmounts refuses what no honest peer says: an amount below zero, or so large that sums of them would not fit.
func checkAmounts(amounts ...int64) bool {
	for _, a := range amounts {
		if a < 0 || a > maxUnits {
			return false
		}
	}
	return true
}

// checkSums refuses sums over a life that are below zero, or near the end of 63 bits.
func checkSums(sums ...int64) bool {
	for _, a := range sums {
		if a < 0 || a > math.MaxInt64/2 {
			return false
		}
	}
	return true
}

func checkTimes(times ...int64) bool {
	for _, t := range times {
		if t < 0 || t > maxTime {
			return false
		}
	}
	return true
}
