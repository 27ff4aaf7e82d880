// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
)

// Whatever is worth it begins with a call that is never made and stands for as many as V8 puts in place, of which none needs more room than
// the smallest of them has: V8 takes what fits into twice the function's size, less what is there already.
func TestCallsAreKept(t *testing.T) {
	small, worth := []byte{0, opEnd}, append(append([]byte{1, 1, typeI32}, bytes.Repeat([]byte{0x01}, leastWorth)...), opEnd)
	m := &module{bodies: [][]byte{small, worth}, types: []uint32{0, 0}, voidType: 0}
	m.keepCalls()
	if !bytes.Equal(m.bodies[0], small) {
		t.Error("a small function has grown")
	}
	last := len(m.bodies) - 1
	want := append([]byte{1, 1, typeI32, opI32Const, 0, opIf, typeVoid, opCall, byte(last), opEnd}, worth[3:]...)
	if !bytes.Equal(m.bodies[1], want) {
		t.Errorf("% x", m.bodies[1])
	}
	if n := m.inlined(last, 2*leastWorth); n < mostInlined {
		t.Errorf("%d are put in place", n)
	}
}

// inlined is how many calls V8 puts in place for one of a function, which has so many bytes of room.
func (m *module) inlined(function, room int) (n int) {
	if room -= len(m.bodies[function]); room <= 0 {
		return 0
	}
	n = 1
	for r := (&reader{m.bodies[function], 1}); r.more(); {
		if in := r.instruction(); in.op == opCall {
			n += m.inlined(int(in.arg), room)
			room -= len(m.bodies[in.arg])
		}
	}
	return n
}
