// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// Opcodes of WebAssembly that control flow is made of, and some that go with them.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opI64Store     = 0x37
	opI32Const     = 0x41
	opI64Const     = 0x42
	opI32Eq        = 0x46
	opMore         = 0xfc

	typeVoid = 0x40
	typeI32  = 0x7f
)

// An instruction is its bytes, and what of it matters here: an index, a constant or the labels of a table.
type instruction struct {
	op    byte
	raw   []byte
	arg   int64
	table []uint32
}

// A reader reads WebAssembly's binary format. It panics with a [malformed] where that has what Go's compiler does not make.
type reader struct {
	b  []byte
	at int
}

type malformed string

func (r *reader) more() bool { return r.at < len(r.b) }

func (r *reader) byte() byte {
	r.at++
	return r.b[r.at-1]
}

func (r *reader) bytes(n int) []byte {
	r.at += n
	return r.b[r.at-n : r.at]
}

// unsigned reads a number in LEB128.
func (r *reader) unsigned() uint32 {
	v := uint32(0)
	for shift := 0; ; shift += 7 {
		c := r.byte()
		if v |= uint32(c&0x7f) << shift; c < 0x80 {
			return v
		}
	}
}

func (r *reader) signed() int64 {
	v := int64(0)
	for shift := 0; ; {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if shift += 7; c < 0x80 {
			if c&0x40 != 0 && shift < 64 {
				v |= -1 << shift
			}
			return v
		}
	}
}

// vector reads as many as it says there are.
func (r *reader) vector(each func(i int)) {
	for i := range int(r.unsigned()) {
		each(i)
	}
}

func (r *reader) instruction() (in instruction) {
	from := r.at
	in.op = r.byte()
	switch op := in.op; {
	case op == opBlock, op == opLoop, op == opIf:
		if in.arg = int64(r.byte()); in.arg < typeVoid {
			panic(malformed("a block with a type of its own"))
		}
	case op == opBr, op == opBrIf, op == opCall, op >= opLocalGet && op <= opGlobalSet:
		in.arg = int64(r.unsigned())
	case op == opBrTable:
		r.vector(func(int) { in.table = append(in.table, r.unsigned()) })
		in.table = append(in.table, r.unsigned())
	case op == opCallIndirect, op >= 0x28 && op <= 0x3e: // loads and stores
		r.unsigned()
		r.unsigned()
	case op == 0x3f, op == 0x40: // the memory's size
		r.byte()
	case op == opI32Const, op == opI64Const:
		in.arg = r.signed()
	case op == 0x43, op == 0x44: // constants with a point
		r.bytes(int(op-0x42) * 4)
	case op == opMore:
		r.extended()
	case op <= 0x01, op == opElse, op == opEnd, op == opReturn, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4:
	default:
		panic(malformed(fmt.Sprintf("instruction %#x", op)))
	}
	in.raw = r.b[from:r.at]
	return in
}

func (r *reader) extended() {
	switch sub := r.unsigned(); {
	case sub < 8: // conversions
	case sub == 10: // copy
		r.bytes(2)
	case sub == 11: // fill
		r.byte()
	default:
		panic(malformed(fmt.Sprintf("instruction 0xfc %d", sub)))
	}
}

func appendUnsigned(b []byte, v uint32) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		if v >>= 7; v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
