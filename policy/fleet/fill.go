// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"math"
	"slices"
)

// A Want is what somebody wants of a capacity. All are units, and at least 0.
type Want struct {
	Floor  int64   // is had in any case
	Demand int64   // more than this is of no use, unless the floor is
	Weight float64 // shares grow in proportion to it; 0 gets the floor
}

func (w Want) most() int64 {
	if w.Weight <= 0 {
		return w.Floor
	}
	return max(w.Floor, w.Demand)
}

// A Filler shares capacities out. It keeps only scratch memory.
type Filler struct {
	steps   []fillStep
	rests   []fillRest
	lowered []Want
}

type fillStep struct{ level, slope float64 }

type fillRest struct {
	rest float64
	who  int32
}

// Fill gives the weighted max-min shares of a capacity: each share is min(max(t x weight, floor), demand) for one water
// level t, rounded to whole units by the largest remainder and, where remainders are equal, in the order of the wants. In
// sum they are min(capacity, all that is wanted), and never more. Floors that do not fit are shared out as if they were
// demands. It writes the shares to x and takes O(n log n).
func (f *Filler) Fill(capacity int64, wants []Want, x []int64) {
	floors, most := int64(0), int64(0)
	for i, w := range wants {
		x[i] = w.most()
		floors += w.Floor
		most += x[i]
	}
	switch {
	case most <= capacity:
	case floors > capacity:
		f.lowered = f.lowered[:0]
		for _, w := range wants {
			f.lowered = append(f.lowered, Want{0, w.Floor, 1})
		}
		f.Fill(max(capacity, 0), f.lowered, x)
	default:
		f.round(capacity, f.level(float64(capacity-floors), wants), wants, x)
	}
}

// level finds the water level at which all shares are more than the floors by so much. Between two steps the sum of the
// shares rises in proportion to the weights of those that are neither at the floor nor at the demand.
func (f *Filler) level(left float64, wants []Want) float64 {
	f.steps = f.steps[:0]
	for _, w := range wants {
		if w.Weight > 0 && w.Demand > w.Floor {
			f.steps = append(f.steps, fillStep{float64(w.Floor) / w.Weight, w.Weight}, fillStep{float64(w.Demand) / w.Weight, -w.Weight})
		}
	}
	slices.SortFunc(f.steps, func(a, b fillStep) int { return cmp.Compare(a.level, b.level) })
	t, slope := 0.0, 0.0
	for _, s := range f.steps {
		if need := (s.level - t) * slope; slope > 0 && need >= left {
			return t + left/slope
		} else if slope > 0 {
			left -= need
		}
		t = s.level
		slope += s.slope
	}
	return t
}

// round gives whole units: each share rounded down, and what that leaves one by one to the largest remainders.
func (f *Filler) round(capacity int64, level float64, wants []Want, x []int64) {
	f.rests = f.rests[:0]
	for i, w := range wants {
		if w.Weight <= 0 || w.Demand <= w.Floor {
			x[i] = w.Floor
			capacity -= x[i]
			continue
		}
		share := min(max(level*w.Weight, float64(w.Floor)), float64(w.Demand))
		down := math.Floor(share)
		x[i] = int64(down)
		capacity -= x[i]
		f.rests = append(f.rests, fillRest{share - down, int32(i)})
	}
	slices.SortStableFunc(f.rests, func(a, b fillRest) int { return cmp.Compare(b.rest, a.rest) })
	f.settle(capacity, wants, x)
}

// settle gives out what is left, or takes back what is too much: floating point may be off by a unit in 2^53.
func (f *Filler) settle(left int64, wants []Want, x []int64) {
	for left != 0 {
		before := left
		for _, r := range f.rests {
			if i := r.who; left > 0 && x[i] < wants[i].Demand {
				x[i]++
				left--
			} else if left < 0 && x[i] > wants[i].Floor {
				x[i]--
				left++
			}
		}
		if left == before {
			return
		}
	}
}
