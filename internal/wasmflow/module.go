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
	voidType int // of functions that take and give nothing
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
	exportSection   = 7
	elementSection  = 9
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
	m = &module{goType: -1, voidType: -1, names: map[string]int{}}
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
			switch string(s.body[from:r.at]) {
			case "\x60\x01\x7f\x01\x7f":
				m.goType = i
			case "\x60\x00\x00":
				m.voidType = i
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

// dropNames leaves out what is for people only.
func (m *module) dropNames() {
	m.sections = slices.DeleteFunc(m.sections, func(s section) bool { return s.id == customSection })
}

// write gives the module with the bodies that it has now.
func (m *module) write() []byte {
	b := []byte(magic)
	for _, s := range m.sections {
		switch s.id {
		case functionSection:
			s.body = appendUnsigned(nil, uint32(len(m.types)))
			for _, t := range m.types {
				s.body = appendUnsigned(s.body, t)
			}
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
