// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// A module is what matters here of one.
type module struct {
	sections []section
	goType   int // of Go's functions: a pc, and whether it unwinds
	imports  int
	types    []uint32 // of its own functions
	bodies   [][]byte
	names    map[string]int // numbers of functions
}

type section struct {
	id   byte
	body []byte
}

// Sections by their ids.
const (
	customSection   = 0
	typeSection     = 1
	importSection   = 2
	functionSection = 3
	codeSection     = 10
)

const magic = "\x00asm\x01\x00\x00\x00"

// read takes a module apart.
func read(b []byte) (m *module, err error) {
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, fmt.Errorf("no module of Go's: %v", r)
		}
	}()
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("this is no WebAssembly")
	}
	m = &module{goType: -1, names: map[string]int{}}
	for r := (&reader{b, len(magic)}); r.more(); {
		id := r.byte()
		s := section{id, r.bytes(int(r.unsigned()))}
		m.sections = append(m.sections, s)
		m.section(s)
	}
	return m, nil
}

func (m *module) section(s section) {
	r := &reader{b: s.body}
	switch s.id {
	case typeSection:
		r.vector(func(i int) {
			from := r.at
			r.byte()
			r.bytes(int(r.unsigned()))
			r.bytes(int(r.unsigned()))
			if string(s.body[from:r.at]) == "\x60\x01\x7f\x01\x7f" {
				m.goType = i
			}
		})
	case importSection:
		r.vector(func(int) {
			r.bytes(int(r.unsigned()))
			r.bytes(int(r.unsigned()))
			if r.byte() != 0 {
				panic(malformed("it imports what is no function"))
			}
			r.unsigned()
			m.imports++
		})
	case functionSection:
		r.vector(func(int) { m.types = append(m.types, r.unsigned()) })
	case codeSection:
		r.vector(func(int) { m.bodies = append(m.bodies, r.bytes(int(r.unsigned()))) })
	case customSection:
		if string(r.bytes(int(r.unsigned()))) == "name" {
			m.readNames(r)
		}
	}
}

func (m *module) readNames(r *reader) {
	const functions = 1
	for r.more() {
		id, size := r.byte(), r.unsigned()
		if end := r.at + int(size); id != functions {
			r.at = end
			continue
		}
		r.vector(func(int) {
			n := r.unsigned()
			m.names[string(r.bytes(int(r.unsigned())))] = int(n)
		})
	}
}

// write gives the module with the bodies that it has now, and without what is for people only.
func (m *module) write() []byte {
	b := []byte(magic)
	for _, s := range m.sections {
		switch s.id {
		case customSection:
			continue
		case codeSection:
			s.body = appendUnsigned(nil, uint32(len(m.bodies)))
			for _, body := range m.bodies {
				s.body = append(appendUnsigned(s.body, uint32(len(body))), body...)
			}
		}
		b = append(appendUnsigned(append(b, s.id), uint32(len(s.body))), s.body...)
	}
	return b
}

// returnAddresses gives, for each function, the pcs that are stored in it as addresses to return to: it may be resumed there. A
// recovered panic resumes one before a call of deferreturn.
func (m *module) returnAddresses(code [][]instruction) [][]uint32 {
	deferReturn, known := m.names["runtime.deferreturn"]
	all := make([][]uint32, len(code))
	base := m.addressBase(code)
	for f, ins := range code {
		for i, in := range ins {
			pc, ok := in.address(f, base)
			if !ok || i+1 == len(ins) || ins[i+1].op != opI64Store {
				continue
			}
			all[f] = append(all[f], pc)
			if call := slices.IndexFunc(ins[i:], func(in instruction) bool { return in.op == opCall || in.op == opCallIndirect }); known && call >= 0 && ins[i+call].arg == int64(deferReturn) && ins[i+call].op == opCall {
				all[f] = append(all[f], pc-1)
			}
		}
	}
	return all
}

// address says whether a constant is an address in a function: 16 bits of pc, and the function's number above.
func (in *instruction) address(function, base int) (pc uint32, ok bool) {
	return uint32(in.arg & 0xffff), in.op == opI64Const && in.arg>>16 == int64(function+base)
}

// addressBase is from which number on functions count in addresses: that by which most constants that are stored are such of the
// function that stores them.
func (m *module) addressBase(code [][]instruction) int {
	votes := map[int]int{}
	best := 0
	for f, ins := range code {
		for i, in := range ins {
			if in.op == opI64Const && i+1 < len(ins) && ins[i+1].op == opI64Store && in.arg>>16 > 0 && in.arg < 1<<40 {
				base := int(in.arg>>16) - f
				if votes[base]++; votes[base] > votes[best] {
					best = base
				}
			}
		}
	}
	return best
}
