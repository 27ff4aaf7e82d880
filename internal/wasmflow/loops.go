// SPDX-License-Identifier: Apache-2.0

package main

// irregular is where the values begin that choose a segment to which a loop is entered beside its header; below are pcs.
const irregular = 1 << 16

// oneWay sees to it that each loop among some nodes has one header, which is the only way into it. Where there are several ways (after a
// call within a loop the function may have to go on right there; and now and then the compiler makes such loops), a dispatch becomes
// the header: it looks at the local that says where to, which is 0 on the usual way.
func (f *function) oneWay(nodes []int) {
	for _, loop := range f.components(nodes) {
		header := f.header(loop)
		rest := loop[:0:0]
		for _, x := range loop {
			if x != header {
				rest = append(rest, x)
			}
		}
		f.oneWay(rest)
	}
}

// header finds or makes the header of a loop.
func (f *function) header(loop []int) int {
	in := make(map[int]bool, len(loop))
	for _, x := range loop {
		in[x] = true
	}
	entered, back, resumed := map[int]bool{}, map[int]int{}, map[int]bool{}
	for from, n := range f.nodes {
		for i := range n.items {
			switch to := n.items[i].exit; {
			case to < 0 || !in[to]:
			case in[from]:
				back[to]++
			default:
				entered[to] = true
			}
		}
		for _, c := range n.choices {
			if in[c.to] && !in[from] {
				resumed[c.to] = true
			}
		}
	}
	best := f.mostUsual(loop, entered, resumed, back)
	delete(entered, best)
	delete(resumed, best)
	if len(entered)+len(resumed) == 0 {
		return best
	}
	return f.dispatch(best, in, entered)
}

// mostUsual picks the node of a loop to which most leads from within, of those by which it is entered.
func (f *function) mostUsual(loop []int, entered, resumed map[int]bool, back map[int]int) int {
	best := -1
	for _, ways := range []map[int]bool{entered, resumed} {
		for _, x := range loop {
			if ways[x] && (best < 0 || back[x] > back[best]) {
				best = x
			}
		}
		if best >= 0 {
			break
		}
	}
	return best
}

// dispatch makes a header for a loop that has several ways in.
func (f *function) dispatch(usual int, in, entered map[int]bool) int {
	d := &node{items: []item{{exit: usual}}}
	at := len(f.nodes)
	for from, n := range f.nodes {
		for i := range n.items {
			it := &n.items[i]
			switch {
			case it.exit == usual:
				it.exit = at
			case it.exit >= 0 && entered[it.exit] && !in[from]:
				it.set = irregular + uint32(it.exit)
				d.choose(it.set, it.exit)
				it.exit = at
			}
		}
		if in[from] {
			continue
		}
		for i := range n.choices {
			if c := &n.choices[i]; in[c.to] {
				d.choose(c.value, c.to)
				c.to = at
			}
		}
	}
	f.nodes = append(f.nodes, d)
	return at
}

func (n *node) choose(value uint32, to int) {
	for _, c := range n.choices {
		if c.value == value {
			return
		}
	}
	n.choices = append(n.choices, choice{value, to})
}

// components are the loops among some nodes: sets of which each node leads to each other. (Tarjan's algorithm.)
func (f *function) components(nodes []int) (loops [][]int) {
	t := &tarjan{function: f, in: map[int]bool{}, index: map[int]int{}, low: map[int]int{}, onStack: map[int]bool{}}
	for _, x := range nodes {
		t.in[x] = true
	}
	for _, x := range nodes {
		if t.index[x] == 0 {
			t.visit(x)
		}
	}
	return t.loops
}

type tarjan struct {
	*function
	in, onStack map[int]bool
	index, low  map[int]int
	stack       []int
	loops       [][]int
}

func (t *tarjan) visit(x int) {
	t.index[x] = len(t.index) + 1
	t.low[x] = t.index[x]
	t.stack, t.onStack[x] = append(t.stack, x), true
	self := false
	t.nodes[x].leads(func(to int) {
		switch self = self || to == x; {
		case !t.in[to]:
		case t.index[to] == 0:
			t.visit(to)
			t.low[x] = min(t.low[x], t.low[to])
		case t.onStack[to]:
			t.low[x] = min(t.low[x], t.index[to])
		}
	})
	if t.low[x] < t.index[x] {
		return
	}
	for i := len(t.stack) - 1; ; i-- {
		t.onStack[t.stack[i]] = false
		if t.stack[i] == x {
			if found := append([]int(nil), t.stack[i:]...); len(found) > 1 || self {
				t.loops = append(t.loops, found)
			}
			t.stack = t.stack[:i]
			return
		}
	}
}
