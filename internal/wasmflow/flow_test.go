// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"pgregory.net/rapid"
)

// Functions of any control flow, in the form in which Go's compiler writes them, do the same when they are written anew: they come by the
// same segments in the same order, whatever is decided on the way, wherever they unwind and are resumed.
func TestAnewDoesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{segments: rapid.IntRange(1, 12).Draw(t, "segments"), t: t}
		body := g.body()
		anew, _, err := restructure(body, runtime{-1, -1})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			bits := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 60).Draw(t, "bits")
			want, got := trace(t, body, bits), trace(t, anew, bits)
			if !slices.Equal(want, got) {
				t.Fatalf("%v, not %v; by %v", got, want, bits)
			}
		}
	})
}

// A body without jumps, or that is none of Go's, stays as it is, or is an error that says so.
func TestWhatIsNotGos(t *testing.T) {
	if anew, _, err := restructure([]byte{0, opI32Const, 0, opEnd}, runtime{}); anew != nil || err != nil {
		t.Error(anew, err)
	}
	jump := []byte{0, opLoop, typeVoid, opBlock, typeVoid, opLocalGet, 0, opBrTable, 0, 0, opEnd, opBr, 0, opEnd, opUnreachable, opEnd}
	if _, _, err := restructure(jump, runtime{}); err == nil {
		t.Error("a jump to nowhere is no error")
	}
	if _, err := read([]byte("MZ")); err == nil {
		t.Error("no module is no error")
	}
}

// The compiler leaves a jump alone where nobody needs it, as in crypto/internal/fips140/aes.expandKeyGeneric. Anything else to which nothing
// leads says that something was not understood.
func TestAJumpThatNobodyNeeds(t *testing.T) {
	jump := []byte{opI32Const, 2, opLocalSet, 0, opBr}
	for name, does := range map[string][]byte{"": nil, "a call": {opCall, decides, 0x1a}} {
		body := []byte{0, opLoop, typeVoid, opBlock, typeVoid, opBlock, typeVoid, opBlock, typeVoid, opLocalGet, 0, opBrTable, 2, 0, 1, 2, opEnd}
		body = append(append(append(body, jump...), 2, opEnd), does...)
		body = append(append(append(body, jump...), 1, opEnd), opI32Const, 0, opReturn, opEnd, opUnreachable, opEnd)
		if anew, lost, err := restructure(body, runtime{-1, -1}); anew == nil || err != nil || lost != (name != "") {
			t.Errorf("%q: %v %v", name, lost, err)
		}
	}
}

// Where a call that unwinds would be resumed must be known, else the build stops.
func TestACallThatReturnsToElsewhere(t *testing.T) {
	for pc, known := range map[byte]bool{0: false, 1: true, 2: false, 60: false} {
		body := []byte{0, opBlock, typeVoid, opLoop, typeVoid, opBlock, typeVoid, opBlock, typeVoid, opLocalGet, 0, opBrTable, 1, 0, 1, opEnd}
		body = append(body, opI32Const, 0, opI64Const, pc, opI64Store, 3, 0, opCall, calls, opBrIf, 2, opEnd)
		body = append(body, opI32Const, 0, opReturn, opEnd, opUnreachable, opEnd, opI32Const, 1, opEnd)
		if _, _, err := restructure(body, runtime{-1, -1}); (err == nil) != known {
			t.Errorf("%d: %v", pc, err)
		}
		if _, _, err := restructure(append(body[:len(body)-1], 0x01, opEnd), runtime{-1, -1}); err == nil {
			t.Error("another end is no error")
		}
	}
	if _, _, err := restructure([]byte{0, opBlock, typeVoid, opLoop, typeVoid, opBlock, typeVoid, opLocalGet, 0, opBrTable, 0, 0, opEnd,
		opCall, calls, opBrIf, 1, opI32Const, 0, opReturn, opEnd, opUnreachable, opEnd, opI32Const, 1, opEnd}, runtime{-1, -1}); err == nil {
		t.Error("a call without an address to return to is no error")
	}
}

// A generator makes a function: each of its segments says its number, and goes on by chance; some call what may unwind.
type generator struct {
	t        *rapid.T
	segments int
	b        []byte
}

// Imports of the test's module.
const (
	says    = 0 // (i32)
	decides = 1 // () i32
	calls   = 2 // () i32: whether to unwind
)

// after says whether a segment begins after a call, and pcs are two to a segment, as pcs are more than segments.
func (g *generator) body() []byte {
	g.b = []byte{0, opBlock, typeVoid, opLoop, typeVoid}
	for range g.segments {
		g.b = append(g.b, opBlock, typeVoid)
	}
	g.b = appendUnsigned(append(g.b, opLocalGet, 0, opBrTable), uint32(2*g.segments-1))
	for pc := range 2 * g.segments {
		g.b = appendUnsigned(g.b, uint32(pc/2))
	}
	g.b = append(g.b, opEnd)
	for i := range g.segments {
		g.segment(i)
		g.b = append(g.b, opEnd) // of a block; the last one's is the loop's
	}
	return append(g.b, opUnreachable, opEnd, opI32Const, 1, opEnd)
}

func (g *generator) segment(i int) {
	outer := uint32(g.segments - 1 - i)
	g.b = append(appendSigned(append(g.b, opI32Const), int64(i)), opCall, says)
	for range rapid.IntRange(0, 2).Draw(g.t, "exits") {
		g.b = append(g.b, opCall, decides, opIf, typeVoid)
		g.jump(outer + 1)
		if rapid.Bool().Draw(g.t, "else") {
			g.b = append(g.b, opElse)
			if rapid.Bool().Draw(g.t, "both") {
				g.jump(outer + 1)
			}
		}
		g.b = append(g.b, opEnd)
	}
	switch end := rapid.IntRange(0, 4).Draw(g.t, "end"); {
	case end == 0:
		g.jump(outer)
	case end == 1 || i == g.segments-1:
		g.b = append(g.b, opI32Const, 0, opReturn)
	case end == 2: // a call, after which it may be resumed
		pc := uint32(2 * (i + 1))
		g.b = append(g.b, opI32Const, 0)
		g.b = append(appendSigned(append(g.b, opI64Const), int64(7<<16|pc)), opI64Store, 3, 0)
		g.b = appendUnsigned(append(g.b, opCall, calls, opBrIf), outer+1)
	}
}

func (g *generator) jump(depth uint32) {
	to := rapid.IntRange(0, g.segments-1).Draw(g.t, "to")
	pc := 2*to + rapid.IntRange(0, 1).Draw(g.t, "pc")
	g.b = append(appendSigned(append(g.b, opI32Const), int64(pc)), opLocalSet, 0)
	g.b = appendUnsigned(append(g.b, opBr), depth)
}

// trace runs a function until it returns, and resumes it each time it unwinds. It gives what it said, and at last what it
// returned, or -1 if there was nothing more to decide by.
func trace(t *rapid.T, body []byte, bits []int) (said []int32) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	next := func() int32 {
		if len(bits) == 0 {
			panic("enough")
		}
		b := bits[0]
		bits = bits[1:]
		return int32(b)
	}
	steps := 0
	_, err := r.NewHostModuleBuilder("t").
		NewFunctionBuilder().WithFunc(func(n int32) {
		if steps++; steps > 1000 {
			panic("enough")
		}
		said = append(said, n)
	}).Export("says").
		NewFunctionBuilder().WithFunc(func() int32 { return next() & 1 }).Export("decides").
		NewFunctionBuilder().WithFunc(func() int32 { return next() / 3 }).Export("calls").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Instantiate(ctx, testModule(body))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return append(said, run(ctx, m)...)
}

func run(ctx context.Context, m api.Module) []int32 {
	pc := uint64(0)
	for {
		got, err := m.ExportedFunction("f").Call(ctx, pc)
		if err != nil {
			return []int32{-1}
		}
		if got[0] == 0 {
			return []int32{-2}
		}
		address, _ := m.Memory().ReadUint64Le(0)
		pc = address & 0xffff
	}
}

// testModule is one with a function f.
func testModule(body []byte) []byte {
	text := func(s string) []byte { return append(appendUnsigned(nil, uint32(len(s))), s...) }
	imports := []byte{3}
	for i, name := range []string{"says", "decides", "calls"} {
		imports = append(append(append(imports, text("t")...), text(name)...), 0, []byte{1, 2, 2}[i])
	}
	code := append(appendUnsigned([]byte{1}, uint32(len(body))), body...)
	b := []byte(magic)
	for _, s := range []section{
		{typeSection, []byte{3, 0x60, 1, typeI32, 1, typeI32, 0x60, 1, typeI32, 0, 0x60, 0, 1, typeI32}},
		{importSection, imports},
		{functionSection, []byte{1, 0}},
		{5, []byte{1, 0, 1}}, // a page of memory
		{7, append(append(append([]byte{2}, text("f")...), 0, 3), append(text("memory"), 2, 0)...)},
		{codeSection, code},
	} {
		b = append(appendUnsigned(append(b, s.id), uint32(len(s.body))), s.body...)
	}
	return b
}
