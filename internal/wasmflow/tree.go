// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// A writer writes a function with blocks and loops in place of the dispatch, along the tree of dominators: where several ways meet, a
// block ends whose end all of them branch to (Ramsey, "Beyond Relooper", 2022).
type writer struct {
	*function
	b      []byte
	labels []label
}

// A label is what a branch can lead to.
type label struct {
	kind labelKind
	node int
}

type labelKind uint8

const (
	within  labelKind = iota // a block of the code's own
	unwinds                  // the block that returns 1
	follows                  // what comes after a block is the node
	repeats                  // the loop of which the node is the header
)

// write gives the body.
func (f *function) write(start int) []byte {
	w := &writer{function: f, b: f.declare()}
	if f.unwind {
		w.open(opBlock, label{kind: unwinds})
	}
	w.tree(start)
	w.b = append(w.b, opUnreachable)
	if f.unwind {
		w.close()
		w.b = append(w.b, opI32Const, 1)
	}
	return append(w.b, opEnd)
}

// declare adds the local to those that there are.
func (f *function) declare() []byte {
	b := append(appendUnsigned(nil, f.groups+1), f.locals...)
	return append(append(b, 1, typeI32), f.head...)
}

func (w *writer) open(op byte, l label) {
	w.b = append(w.b, op, typeVoid)
	w.labels = append(w.labels, l)
}

func (w *writer) close() {
	w.b = append(w.b, opEnd)
	w.labels = w.labels[:len(w.labels)-1]
}

// depth is the number by which a branch from here leads to a label.
func (w *writer) depth(l label) uint32 {
	for i := len(w.labels) - 1; i >= 0; i-- {
		if w.labels[i] == l {
			return uint32(len(w.labels) - 1 - i)
		}
	}
	panic(malformed(fmt.Sprintf("no label %v", l)))
}

func (w *writer) branch(op byte, l label) { w.b = appendUnsigned(append(w.b, op), w.depth(l)) }

// tree writes a node and all that it dominates.
func (w *writer) tree(x int) {
	n := w.nodes[x]
	if !n.loop {
		w.blocks(x, n.merges)
		return
	}
	w.open(opLoop, label{repeats, x})
	w.blocks(x, n.merges)
	w.close()
	w.b = append(w.b, opUnreachable)
}

// blocks writes a node within the blocks after which the ways meet that it dominates.
func (w *writer) blocks(x int, merges []int) {
	if len(merges) == 0 {
		w.node(x)
		return
	}
	w.open(opBlock, label{follows, merges[0]})
	w.blocks(x, merges[1:])
	w.close()
	w.tree(merges[0])
}

func (w *writer) node(x int) {
	n := w.nodes[x]
	if n.resets {
		w.b = appendUnsigned(append(w.b, opI32Const, 0, opLocalSet), w.local)
	}
	switch {
	case len(n.choices) == 0:
	case n.entry:
		w.enter(n)
	default:
		w.choose(n)
	}
	for i := range n.items {
		w.item(n, &n.items[i])
	}
	w.b = append(w.b, opUnreachable) // nothing comes here, which whoever validates it cannot always know
}

func (w *writer) item(n *node, it *item) {
	switch {
	case it.exit >= 0:
		w.exit(n, it)
		return
	case it.unwind:
		w.branch(opBrIf, label{kind: unwinds})
		return
	case it.op == opBlock, it.op == opLoop, it.op == opIf:
		w.labels = append(w.labels, label{})
	case it.op == opEnd:
		w.labels = w.labels[:len(w.labels)-1]
	}
	w.b = append(w.b, it.raw...)
}

func (w *writer) exit(n *node, it *item) {
	if it.set != 0 {
		w.b = appendUnsigned(append(appendSigned(append(w.b, opI32Const), int64(it.set)), opLocalSet), w.local)
	}
	switch to := w.nodes[it.exit]; {
	case to.position <= n.position:
		w.branch(opBr, label{repeats, it.exit})
	case to.ways > 1:
		w.branch(opBr, label{follows, it.exit})
	default:
		w.tree(it.exit)
	}
}

// enter goes to where a caller that resumes wants to, whose pc is the parameter.
func (w *writer) enter(n *node) {
	w.b = append(w.b, opLocalGet, 0)
	w.open(opIf, label{})
	w.open(opBlock, label{})
	w.b = appendUnsigned(append(w.b, opLocalGet, 0, opLocalTee), w.local)
	most := n.choices[len(n.choices)-1].value
	w.b = appendUnsigned(append(w.b, opBrTable), most+1)
	next := n.choices
	for pc := range most + 1 {
		to := uint32(0)
		if next[0].value == pc {
			to = w.depth(label{follows, next[0].to})
			next = next[1:]
		}
		w.b = appendUnsigned(w.b, to)
	}
	w.b = append(w.b, 0)
	w.close()
	w.b = append(w.b, opUnreachable)
	w.close()
}

// choose goes to where the local says, unless that is 0.
func (w *writer) choose(n *node) {
	w.b = appendUnsigned(append(w.b, opLocalGet), w.local)
	w.open(opIf, label{})
	for _, c := range n.choices {
		w.b = appendUnsigned(append(w.b, opLocalGet), w.local)
		w.b = append(appendSigned(append(w.b, opI32Const), int64(c.value)), opI32Eq)
		w.branch(opBrIf, label{follows, c.to})
	}
	w.b = append(w.b, opUnreachable)
	w.close()
}
