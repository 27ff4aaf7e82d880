// SPDX-License-Identifier: Apache-2.0

package main

// V8 without its baseline compiler, as in Envoy, knows of no call how often it is made, and so puts the code of whatever is called in
// place of the first 60 calls of a function, until it is as large again as it was, and so on in what it has put there (V8's
// src/wasm/turboshaft-graph-interface.cc and inlining-tree.h). With Go's code these are the calls that let stacks grow, and panics.
const (
	mostInlined = 60 // V8's kMaxInlinedCount
	leastWorth  = 50 // bytes of a function; what is smaller grows by 50 bytes at most (V8's wasm_inlining_min_budget)
)

// keepCalls has V8 leave the calls of functions as they are: the first of each is one that is never made, in place of which 60 calls of
// nothing would be put. It costs other engines nothing.
func (m *module) keepCalls() {
	nothing := []byte{0, opEnd}
	callee := m.add(nothing)
	for n := 1; n < mostInlined; n = 2*n + 2 {
		twice := appendUnsigned([]byte{0, opCall}, callee)
		callee = m.add(append(appendUnsigned(append(twice, opCall), callee), opEnd))
	}
	never := append(appendUnsigned([]byte{opI32Const, 0, opIf, typeVoid, opCall}, callee), opEnd)
	for i, body := range m.bodies[:len(m.bodies)] {
		if len(body) < leastWorth {
			continue
		}
		r := &reader{b: body}
		r.vector(func(int) { r.unsigned(); r.byte() })
		m.bodies[i] = append(append(append([]byte{}, body[:r.at]...), never...), body[r.at:]...)
	}
}

// add adds a function without parameters and results.
func (m *module) add(body []byte) (number uint32) {
	m.bodies, m.types = append(m.bodies, body), append(m.types, uint32(m.voidType))
	return uint32(m.imports + len(m.bodies) - 1)
}
