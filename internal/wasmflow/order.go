// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// analyse finds the order of the nodes, what dominates them, and which loops and meeting points there are, from a start. false: there is a
// loop with several ways in, which [function.oneWay] leaves none of.
func (f *function) analyse(start int) (ok bool) {
	order := f.reversePostorder(start)
	from := make([][]int, len(f.nodes))
	for _, x := range order {
		f.nodes[x].leads(func(to int) { from[to] = append(from[to], x) })
	}
	f.dominators(order, from)
	for _, x := range order {
		n := f.nodes[x]
		for _, p := range from[x] {
			switch {
			case f.nodes[p].position < n.position:
				n.ways++
			case !f.dominates(x, p):
				return false
			default:
				n.loop = true
			}
		}
	}
	for _, x := range order {
		for _, c := range f.nodes[x].choices { // chosen by a branch, so it needs a label
			f.nodes[c.to].ways += 2
			f.nodes[c.to].resets = f.nodes[c.to].resets || len(f.nodes[c.to].choices) == 0
		}
	}
	for _, x := range slices.Backward(order[1:]) {
		if n := f.nodes[x]; n.ways > 1 {
			d := f.nodes[n.dominator]
			d.merges = append(d.merges, x)
		}
	}
	return true
}

func (f *function) reversePostorder(start int) (order []int) {
	for _, n := range f.nodes {
		n.position = -1
	}
	var visit func(int)
	visit = func(x int) {
		f.nodes[x].position = 0
		var next []int
		f.nodes[x].leads(func(to int) { next = append(next, to) })
		for _, to := range slices.Backward(next) {
			if f.nodes[to].position < 0 {
				visit(to)
			}
		}
		order = append(order, x)
	}
	visit(start)
	slices.Reverse(order)
	for i, x := range order {
		f.nodes[x].position = i
	}
	return order
}

// dominators are found as Cooper, Harvey and Kennedy do ("A simple, fast dominance algorithm", 2001).
func (f *function) dominators(order []int, from [][]int) {
	for _, x := range order {
		f.nodes[x].dominator = -1
	}
	f.nodes[order[0]].dominator = order[0]
	for changed := true; changed; {
		changed = false
		for _, x := range order[1:] {
			d := -1
			for _, p := range from[x] {
				if f.nodes[p].dominator < 0 {
					continue
				}
				if d < 0 {
					d = p
				}
				d = f.common(d, p)
			}
			if f.nodes[x].dominator != d {
				f.nodes[x].dominator, changed = d, true
			}
		}
	}
}

// common is the nearest node that dominates both.
func (f *function) common(a, b int) int {
	for a != b {
		for f.nodes[a].position > f.nodes[b].position {
			a = f.nodes[a].dominator
		}
		for f.nodes[b].position > f.nodes[a].position {
			b = f.nodes[b].dominator
		}
	}
	return a
}

func (f *function) dominates(a, b int) bool {
	for f.nodes[b].position > f.nodes[a].position {
		b = f.nodes[b].dominator
	}
	return a == b
}
