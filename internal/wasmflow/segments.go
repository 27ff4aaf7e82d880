// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// A function is one as Go's compiler writes it, taken apart: segments of code of which each says where it goes on. It wrote
//
//	block                        // unwinding: return 1
//	  loop                       // to go anywhere
//	    block … block            // one for each segment
//	      br_table (local 0)     // PC_B: where to go on
//	    end
//	    segment 0
//	    end
//	    segment 1 …
//
// where "i32.const pc, local.set 0, br to the loop" goes to the segment of a pc. A caller gives 0, which begins; who resumes what was
// unwound (goroutines switch by that, stacks grow by it) gives the pc of a return address, which was stored before a call.
type function struct {
	groups uint32 // of locals
	locals []byte // their declarations
	head   []byte // what comes before all blocks
	local  uint32 // one more, which it gets
	unwind bool   // it has the block for that
	nodes  []*node
	table  []uint32 // segments by pc
	pcs    []uint32 // where it may be resumed
}

// A node is a segment, or a choice that was made for it.
type node struct {
	items   []item
	choices []choice // a dispatch: by the function's new local, or if it is the entry by its parameter
	entry   bool
	resets  bool // the local is 0 from here on

	// What analyse finds.
	position  int // in reverse postorder; -1: nothing leads there
	dominator int
	merges    []int // nodes that it dominates at once and to which several ways lead, the last first
	ways      int   // forward
	loop      bool  // something leads back to it
}

// An item is an instruction, or an exit to another node.
type item struct {
	instruction
	exit   int    // -1: none
	set    uint32 // what the local is set to on the way; 0: it stays
	unwind bool   // a br_if that unwinds
}

type choice struct {
	value uint32
	to    int
}

// parse takes a body apart. It gives nil for one without a loop, which has nothing to win.
func parse(body []byte, rt runtime) *function {
	r := &reader{b: body}
	f := &function{groups: r.unsigned(), local: 1}
	from := r.at
	for range f.groups {
		f.local += r.unsigned()
		r.byte()
	}
	f.locals = body[from:r.at]
	p := &parser{function: f, runtime: rt}
	for from = r.at; r.more(); {
		p.code = append(p.code, r.instruction())
	}
	if p.code[0].op == opGlobalGet && p.code[1].op == opLocalSet { // the stack pointer
		p.at = 2
		f.head = body[from:][:len(p.code[0].raw)+len(p.code[1].raw)]
	}
	if !p.opens() {
		return nil
	}
	for i := range p.blocks {
		p.segment(i)
	}
	p.closes()
	return f
}

type parser struct {
	*function
	runtime
	code   []instruction
	at     int
	blocks int // as many as segments
}

// opens reads what comes before the first segment. false: there is no loop.
func (p *parser) opens() bool {
	is := func(op byte) bool { return p.code[p.at].op == op && p.code[p.at].arg == typeVoid }
	if is(opBlock) {
		p.unwind = true
		p.at++
	}
	if !is(opLoop) {
		return false
	}
	for p.at++; is(opBlock); p.at++ {
		p.blocks++
	}
	get, jump, end := &p.code[p.at], &p.code[p.at+1], &p.code[p.at+2]
	if p.blocks == 0 || get.op != opLocalGet || get.arg != 0 || jump.op != opBrTable || end.op != opEnd {
		return false
	}
	p.at, p.table = p.at+3, jump.table
	return true
}

// segment reads one. What nothing comes to is left out.
func (p *parser) segment(i int) {
	s := &scan{function: p.function, node: &node{}, outer: p.blocks - 1 - i}
	p.nodes = append(p.nodes, s.node)
	for s.take(p.code[p.at]) {
		p.at++
	}
	if p.at++; !s.dead {
		s.node.falls(i+1, p.blocks)
	}
	p.returns(i)
}

// closes reads what comes after the last segment.
func (p *parser) closes() {
	want := []byte{opUnreachable, opEnd}
	if p.unwind {
		want = []byte{opUnreachable, opEnd, opI32Const, opEnd}
	}
	rest := p.code[p.at:]
	if !slices.EqualFunc(rest, want, func(in instruction, op byte) bool { return in.op == op }) || p.unwind && rest[2].arg != 1 {
		panic(malformed("another end than Go's compiler writes"))
	}
}

// A scan reads a segment.
type scan struct {
	*function
	node  *node
	outer int     // blocks around it, within the loop
	open  []frame // blocks within it
	dead  bool    // nothing comes to here
}

type frame struct {
	op      byte
	dead    bool // so was what is around it
	then    bool // an if whose first part does not come to its end
	reached bool // something leads to its end
}

// take takes an instruction. false: it ends the segment.
func (s *scan) take(in instruction) (more bool) {
	switch depth := len(s.open); in.op {
	case opBlock, opLoop, opIf:
		s.open = append(s.open, frame{op: in.op, dead: s.dead})
	case opElse:
		f := &s.open[depth-1]
		f.op, f.then = opElse, s.dead
		s.dead = f.dead
	case opEnd:
		if depth == 0 {
			return false
		}
		f := s.open[depth-1]
		s.open = s.open[:depth-1]
		s.dead = f.dead || f.op == opElse && f.then && s.dead && !f.reached
		if !f.dead {
			s.node.items = append(s.node.items, item{instruction: in, exit: -1})
		}
		return true
	}
	if !s.dead {
		s.live(in)
	}
	return true
}

func (s *scan) live(in instruction) {
	it := item{instruction: in, exit: -1}
	depth := len(s.open)
	switch to := int(in.arg); {
	case in.op == opBr && to == depth+s.outer:
		it.exit = s.node.goes(s.table)
		s.dead = true
	case in.op == opBrIf && s.unwind && to == depth+s.outer+1:
		it.unwind = true
	case in.op == opBr, in.op == opBrIf:
		if to >= depth {
			panic(malformed("a branch to where Go's compiler leads none"))
		}
		s.open[depth-1-to].reached = true
		s.dead = in.op == opBr
	case in.op == opBrTable:
		panic(malformed("another table"))
	case in.op == opReturn, in.op == opUnreachable:
		s.dead = true
	}
	s.node.items = append(s.node.items, it)
}

// falls ends a segment whose end is reached: it goes on with the next.
func (n *node) falls(next, segments int) {
	if next == segments {
		n.items = append(n.items, item{instruction: instruction{op: opUnreachable, raw: []byte{opUnreachable}}, exit: -1})
		return
	}
	n.items = append(n.items, item{exit: next})
}

// goes takes off the two instructions that say where a jump goes, and gives its segment.
func (n *node) goes(table []uint32) int {
	if len(n.items) >= 2 {
		pc, set := n.items[len(n.items)-2], n.items[len(n.items)-1]
		if pc.op == opI32Const && pc.exit < 0 && set.op == opLocalSet && set.arg == 0 && pc.arg >= 0 && int(pc.arg) < len(table) {
			n.items = n.items[:len(n.items)-2]
			return int(table[pc.arg])
		}
	}
	panic(malformed("a jump to where nobody knows"))
}

// leads gives where a node goes on, each as often as it does.
func (n *node) leads(to func(int)) {
	for i := range n.items {
		if n.items[i].exit >= 0 {
			to(n.items[i].exit)
		}
	}
	for _, c := range n.choices {
		to(c.to)
	}
}

// does says whether a node is more than where it goes on.
func (n *node) does() bool {
	return len(n.items) != 1 || n.items[0].exit < 0 && n.items[0].op != opUnreachable
}
