// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// slowFill is the obvious twin of Fill, without whole units: the water rises until it is all there, by bisection.
func slowFill(capacity int64, wants []Want) []float64 {
	at := func(t float64) (x []float64, sum float64) {
		for _, w := range wants {
			v := float64(w.Floor)
			if w.Weight > 0 {
				v = max(v, min(t*w.Weight, float64(w.Demand)))
			}
			x, sum = append(x, v), sum+v
		}
		return x, sum
	}
	low, high := 0.0, 1e9
	for range 200 {
		if _, sum := at((low + high) / 2); sum > float64(capacity) {
			high = (low + high) / 2
		} else {
			low = (low + high) / 2
		}
	}
	x, _ := at(low)
	return x
}

func drawWants(t *rapid.T) []Want {
	amount := rapid.OneOf(rapid.Int64Range(0, 10), rapid.Int64Range(0, 1e6))
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Want {
		return Want{amount.Draw(t, "floor"), amount.Draw(t, "demand"), rapid.SampledFrom([]float64{0, 0.3, 1, 1, 1, 2.5}).Draw(t, "weight")}
	}), 1, 30).Draw(t, "wants")
}

func fill(capacity int64, wants []Want) []int64 {
	var f Filler
	x := make([]int64, len(wants))
	f.Fill(capacity, wants, x)
	return x
}

func sums(wants []Want, x []int64) (floors, most, sum int64) {
	for i, w := range wants {
		floors, most, sum = floors+w.Floor, most+w.most(), sum+x[i]
	}
	return
}

// P16: bounds, sum, and less than one unit from the exact weighted max-min shares.
func TestFill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wants := drawWants(t)
		capacity := rapid.Int64Range(0, 5e6).Draw(t, "capacity")
		x := fill(capacity, wants)
		floors, most, sum := sums(wants, x)
		if sum != min(capacity, most) {
			t.Fatalf("%d in sum, of %d and %d wanted", sum, capacity, most)
		}
		if floors > capacity {
			return
		}
		exact := slowFill(capacity, wants)
		for i, w := range wants {
			if x[i] < w.Floor || x[i] > w.most() {
				t.Fatalf("%+v gets %d", w, x[i])
			}
			if d := float64(x[i]) - exact[i]; d >= 1.001 || d <= -1.001 {
				t.Fatalf("%+v gets %d, not %f", w, x[i], exact[i])
			}
		}
	})
}

// With more to share out nobody gets less, but for the rounding; and the order of the wants changes a unit at most.
func TestFillIsMonotoneAndFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wants := drawWants(t)
		capacity := rapid.Int64Range(0, 5e6).Draw(t, "capacity")
		x, y := fill(capacity, wants), fill(capacity+rapid.Int64Range(0, 1e6).Draw(t, "more"), wants)
		for i := range x {
			if floors, _, _ := sums(wants, x); y[i] < x[i]-1 && floors <= capacity {
				t.Fatalf("%d becomes %d with more", x[i], y[i])
			}
		}
		order := rapid.Permutation(indices(len(wants))).Draw(t, "order")
		var moved []Want
		for _, i := range order {
			moved = append(moved, wants[i])
		}
		for at, got := range fill(capacity, moved) {
			if d := got - x[order[at]]; d < -1 || d > 1 {
				t.Fatalf("another order: %d becomes %d", x[order[at]], got)
			}
		}
	})
}

func indices(n int) (l []int) {
	for i := range n {
		l = append(l, i)
	}
	return l
}

// A round of 10,000 keys, each with demand on 10 of 1,000 nodes, and of one key with demand on all of them.
func BenchmarkFill(b *testing.B) {
	for _, c := range []struct{ keys, nodes int }{{10_000, 10}, {1, 1000}} {
		b.Run(fmt.Sprintf("%dx%d", c.keys, c.nodes), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			wants, x := make([]Want, c.nodes), make([]int64, c.nodes)
			var f Filler
			for b.Loop() {
				for range c.keys {
					for i := range wants {
						wants[i] = Want{1, r.Int64N(2_000_000), 1}
					}
					f.Fill(int64(c.nodes)*700_000, wants, x)
				}
			}
		})
	}
}

// A round as it is: a report of each holding, and a rebalance of each key. Keys have demand on 10 of 1,000 nodes each, or
// one key on all.
func BenchmarkRound(b *testing.B) {
	for _, c := range []struct{ keys, nodes int }{{10_000, 10}, {1, 1000}} {
		b.Run(fmt.Sprintf("%dx%d", c.keys, c.nodes), func(b *testing.B) {
			q := Quota{Limit: 60_000_000, Window: 60e9, Burst: 1_000_000, Memory: MemoryOf(60e9, 1e8), Floors: 6_000_000, Nodes: 1000}
			ledgers := make([]*Ledger, c.keys)
			for i := range ledgers {
				ledgers[i] = NewLedger(1e9, "k", q, DefaultParams(), 1, true)
			}
			now, k := int64(1e9), uint64(0)
			r := rand.New(rand.NewPCG(1, 1))
			names := make([]string, 1000)
			for i := range names {
				names[i] = fmt.Sprintf("envoy-%04d", i)
			}
			var out []Push
			for b.Loop() {
				now, k = now+1e9, k+1
				for at, l := range ledgers {
					for i := range c.nodes {
						p := l.named[names[(at+i*1000/c.nodes)%1000]]
						h := Holding{Demand: r.Int64N(120_000_000 / int64(c.nodes))}
						if p != nil {
							h.Version, h.Rate = p.version, p.target
						}
						l.Report(now, &Report{Node: names[(at+i*1000/c.nodes)%1000], Incarnation: 1, Number: k, Epoch: 1}, &h)
					}
					out = l.Rebalance(now, out[:0])
				}
			}
		})
	}
}
