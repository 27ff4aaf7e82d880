// SPDX-License-Identifier: Apache-2.0

package main

import "bytes"

// place has the functions of some names come first, in their order; all others follow in theirs. Each call in V8 goes by a table of jumps in
// the order of functions, and their code lies in about that order, too: what a request runs through lies together then. What Go's runtime
// knows functions by are places in the module's table of functions, which stay.
func (m *module) place(first []string) {
	var order []int // new to old
	taken := make([]bool, len(m.bodies))
	take := func(i int) {
		if !taken[i] {
			order, taken[i] = append(order, i), true
		}
	}
	for _, name := range first {
		if n, ok := m.names[name]; ok && n >= m.imports {
			take(n - m.imports)
		}
	}
	for i := range m.bodies {
		take(i)
	}
	to := make([]uint32, m.imports+len(order)) // old number to new
	for n := range m.imports {
		to[n] = uint32(n)
	}
	bodies, types := make([][]byte, len(order)), make([]uint32, len(order))
	for n, old := range order {
		to[m.imports+old] = uint32(m.imports + n)
		bodies[n], types[n] = m.bodies[old], m.types[old]
	}
	for i, body := range bodies {
		bodies[i] = renumber(body, to)
	}
	m.bodies, m.types = bodies, types
	for i := range m.sections {
		m.sections[i].renumber(to)
	}
}

// renumber gives a body with its calls to the new numbers.
func renumber(body []byte, to []uint32) []byte {
	r := &reader{b: body}
	r.vector(func(int) { r.unsigned(); r.byte() })
	b := bytes.Clone(body[:r.at])
	for r.more() {
		in := r.instruction()
		if in.op == opCall {
			b = appendUnsigned(append(b, opCall), to[in.arg])
			continue
		}
		b = append(b, in.raw...)
	}
	return b
}

// renumber does that for what a section says of functions.
func (s *section) renumber(to []uint32) {
	r := &reader{b: s.body}
	var b []byte
	switch s.id {
	case exportSection:
		const function = 0
		n := r.unsigned()
		b = appendUnsigned(b, n)
		for range n {
			from := r.at
			r.bytes(int(r.unsigned()))
			kind := r.byte()
			b = append(b, s.body[from:r.at]...)
			x := r.unsigned()
			if kind == function {
				x = to[x]
			}
			b = appendUnsigned(b, x)
		}
	case elementSection:
		n := r.unsigned()
		b = appendUnsigned(b, n)
		for range n {
			from := r.at
			if r.unsigned() != 0 {
				panic(malformed("elements in a form that Go's linker does not write"))
			}
			for r.instruction().op != opEnd {
			}
			b = append(b, s.body[from:r.at]...)
			count := r.unsigned()
			b = appendUnsigned(b, count)
			for range count {
				b = appendUnsigned(b, to[r.unsigned()])
			}
		}
	default:
		return
	}
	s.body = b
}
