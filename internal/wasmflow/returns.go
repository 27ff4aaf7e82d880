// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// A runtime is the numbers of two functions of Go's runtime: a recovered panic resumes a function at its call of deferReturn, and after
// sigpanic none is ever resumed.
type runtime struct{ deferReturn, sigpanic int64 }

func (m *module) runtime() (r runtime, ok bool) {
	deferReturn, found := m.names["runtime.deferreturn"]
	sigpanic, ok := m.names["runtime.sigpanic"]
	return runtime{int64(deferReturn), int64(sigpanic)}, found && ok
}

// returns takes note of where a function is resumed that a call in a segment unwinds: at the return address that was stored right before.
// That is the next segment, or, for a call that does not end its segment, where this one begins (stacks grow so). Whatever else a segment
// has is not understood.
func (p *parser) returns(segment int) {
	items := p.nodes[segment].items
	for i := range items {
		if !items[i].unwind {
			continue
		}
		to := segment
		if i == len(items)-2 && items[i+1].exit == segment+1 {
			to++
		}
		call, pc := returnAddress(items[:i])
		if int(pc) >= len(p.table) || int(p.table[pc]) != to {
			panic(malformed("a call that returns to elsewhere"))
		}
		if call == p.sigpanic {
			continue
		}
		p.pcs = append(p.pcs, pc)
		if call == p.deferReturn {
			p.pcs = append(p.pcs, pc-1)
		}
	}
}

// returnAddress gives which function is called (-1: one that a table says) by the last call of some code, and the pc of its return address:
// the lower 16 bits of the constant that was stored last before it. Those above are the function's number, which the linker gives.
func returnAddress(items []item) (call int64, pc uint32) {
	called := last(items, opCall, opCallIndirect)
	stored := last(items[:max(called, 0)], opI64Store)
	if stored < 1 || items[stored-1].op != opI64Const {
		panic(malformed("a call that unwinds, and no address to return to"))
	}
	call = -1
	if items[called].op == opCall {
		call = items[called].arg
	}
	return call, uint32(items[stored-1].arg & 0xffff)
}

func last(items []item, ops ...byte) int {
	for i := len(items) - 1; i >= 0; i-- {
		if slices.Contains(ops, items[i].op) {
			return i
		}
	}
	return -1
}

// resumes makes a function one that can be gone on with where it is resumed.
func (f *function) resumes() (start int) {
	slices.Sort(f.pcs)
	entry := &node{entry: true, items: []item{{exit: 0}}}
	for _, pc := range slices.Compact(f.pcs) {
		if pc > 0 { // 0 begins
			entry.choices = append(entry.choices, choice{pc, int(f.table[pc])})
		}
	}
	f.nodes = append(f.nodes, entry)
	return len(f.nodes) - 1
}
