// SPDX-License-Identifier: Apache-2.0

package policy

// A Part is what a class has of limits that it shares with other classes. It stands beside the buckets of a path, which must
// admit as well. Package queue has the one there is.
type Part interface {
	Refuse(now int64, cost Cost) Refusal // why the class may not have the cost now; its Reason is None if it may
	Take(now int64, cost Cost) bool      // takes it, or nothing
	Settle(now int64, was, actual Cost)  // makes a take of was count as actual
}

// checkPart asks the class's part, where a path has one.
func (p *Path) checkPart(now int64, cost *Cost, d *Decision) {
	if p.Part == nil {
		return
	}
	if f := p.Part.Refuse(now, *cost); f.Reason != None {
		d.refuse(f, p.Shadow)
		d.Part = !p.Shadow
	}
}

// takePart takes the cost from the class's part, after all buckets gave it; false: others were faster.
func (p *Path) takePart(now int64, cost *Cost, res *Reservation) bool {
	if p.Part == nil {
		return true
	}
	if !p.Part.Take(now, *cost) {
		return p.Shadow
	}
	res.path.Part = p.Part
	return true
}

// IsRate says whether classes can have shares of the meter, if it is large enough: not of what a day or a request tree has in
// all, nor of money.
func (m Meter) IsRate() bool {
	return (m.Kind == Sliding || m.Kind == Continuous) && m.sub == 0 && m.Dimension.Unit() != Spend && m.Window() < quotaWindow
}

// Splits says whether classes with these shares can each have a part of the meter: one unit at least, and one at once.
func (m Meter) Splits(shares []Share) bool {
	if !m.IsRate() {
		return false
	}
	burst, some := m.rate.burst, false
	for _, s := range shares {
		if s <= 0 {
			continue
		}
		some = true
		burst -= max(mulDivDown(m.rate.burst, int64(s), int64(Whole))/2, 1)
		if mulDivDown(m.rate.limit, int64(s), int64(Whole)) < 1 {
			return false
		}
	}
	return some && burst >= 0
}

// Shares are those of the classes, the highest first; nil if none has one.
func (p *Policy) Shares() (shares []Share) {
	some := false
	for _, c := range p.Classes {
		shares = append(shares, c.Share)
		some = some || c.Share > 0
	}
	if !some {
		return nil
	}
	return shares
}
