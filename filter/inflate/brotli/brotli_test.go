// SPDX-License-Identifier: Apache-2.0

package brotli

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	twin "github.com/andybalholm/brotli"
)

const maxWork = 8 << 20

func pack(plain []byte, level, window int) []byte {
	var b bytes.Buffer
	w := twin.NewWriterOptions(&b, twin.WriterOptions{Quality: level, LGWin: window})
	_, _ = w.Write(plain)
	_ = w.Close()
	return b.Bytes()
}

// samples are bodies of many kinds: text of people and of programs, numbers, noise of few and of many symbols, long runs, and what is far back.
func samples(t testing.TB) map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	noise := func(n, symbols int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.IntN(symbols))
		}
		return b
	}
	texts, err := os.ReadFile("../../../policy/tokens/testdata/texts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	far := append(append(noise(200_000, 256), make([]byte, 300_000)...), noise(100, 256)...)
	m := map[string][]byte{
		"empty": {}, "a byte": {'x'}, "a run": make([]byte, 1<<20), "far": append(far, far[:200_000]...), "texts": texts[:min(len(texts), 600_000)], "skewed": nil, "numbers": nil,
		"a web page": []byte(`<!DOCTYPE html><html><head><title>Information about this</title><link rel="stylesheet" type="text/css" href="/favicon.ico"/></head><body>The quick response of the government</body></html>`),
	}
	for _, symbols := range []int{2, 3, 17, 100, 256} {
		for _, n := range []int{5, 100, 1000, 70_000} {
			m[fmt.Sprint(symbols, " symbols, ", n)] = noise(n, symbols)
		}
	}
	for i := range 50_000 {
		m["skewed"] = append(m["skewed"], byte(min(r.ExpFloat64()*9, 255)))
		m["numbers"] = append(m["numbers"], byte(i), byte(i>>8), byte(r.IntN(3)), 0)
	}
	return m
}

// What the twin packs at any level comes out again.
func TestRoundTrip(t *testing.T) {
	for name, plain := range samples(t) {
		for level := range 12 {
			for _, window := range []int{10, 17, 24}[level%3:] {
				if level > 9 { // it takes seconds
					plain = plain[:min(len(plain), 40_000)]
				}
				got, err := io.ReadAll(NewReader(bytes.NewReader(pack(plain, level, window)), maxWork))
				if err != nil || !bytes.Equal(got, plain) {
					t.Fatalf("%s at %d, %d: %v, %d bytes of %d", name, level, window, err, len(got), len(plain))
				}
			}
		}
	}
}

// A bitWriter writes streams that no packer would.
type bitWriter struct {
	b []byte
	n int
}

func (w *bitWriter) put(v, k int) {
	for i := range k {
		if w.n%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[w.n/8] |= byte(v >> i & 1 << (w.n % 8))
		w.n++
	}
}

// word writes a meta-block of one copy, so many bytes long when it is transformed.
func (w *bitWriter) word(length, distance, transformed int) {
	w.put(0, 1)              // not the last
	w.put(0, 2)              // 4 nibbles
	w.put(transformed-1, 16) // their number
	w.put(0, 1)              // compressed
	w.put(0, 3+2+4+2+2)      // one type of each, postfix, direct, mode, one code for literals and for distances
	simple := func(symbol, width int) {
		w.put(1, 2)
		w.put(0, 2)
		w.put(symbol, width)
	}
	simple('x', 8)
	c := 0 // insert nothing
	for c < 23 && int(copyBase[c+1]) <= length {
		c++
	}
	command := 128 + c // 2: copies 0 to 7, 3: 8 to 15
	if c >= 8 {
		command = 192 + c - 8
	}
	simple(command, 10)
	s, d := 0, distance-1
	for ; d >= (2+(s+1)&1)<<((s+1)>>1+1)-4; s++ {
	}
	simple(shortDistance+s, 6)
	w.put(length-int(copyBase[c]), int(copyBits[c]))
	w.put(d-((2+s&1)<<(s>>1+1)-4), s>>1+1)
}

// Each word of the dictionary, and each transform of some words, is as the twin has it.
func TestDictionary(t *testing.T) {
	d := theDictionary()
	if len(d.transforms) != 121 {
		t.Fatalf("%d transforms", len(d.transforms))
	}
	for length := minWord; length <= maxWord; length++ {
		var w bitWriter
		w.put(1, 1) // a window of 2^18
		w.put(1, 3)
		n, total := 1<<wordBits[length], 0
		for id := range n * len(d.transforms) {
			if id >= n && id%97 != 0 && id>>wordBits[length] != upperFirst && id%n > 2 {
				continue
			}
			r := Reader{length: length, left: 1 << 10, work: 1}
			if err := r.word(id); err != nil {
				t.Fatal(err)
			}
			if len(r.out) == 0 {
				continue
			}
			w.word(length, min(total, 1<<18-16)+id+1, len(r.out))
			total += len(r.out)
		}
		w.put(3, 2)
		want, err := io.ReadAll(twin.NewReader(bytes.NewReader(w.b)))
		if err != nil || len(want) != total {
			t.Fatalf("length %d: the twin reads %d of %d: %v", length, len(want), total, err)
		}
		if got, err := io.ReadAll(NewReader(bytes.NewReader(w.b), 1<<40)); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("length %d: %v, %d bytes of %d", length, err, len(got), len(want))
		}
	}
}

// Of a part of a stream all comes out that is there, and then its end is unexpected. Nothing may follow the end.
func TestPart(t *testing.T) {
	plain := samples(t)["texts"][:50_000]
	for _, level := range []int{0, 5, 11} {
		packed := pack(plain, level, 0)
		for _, n := range []int{0, 1, 3, 5, 1000, len(packed) / 2, len(packed) - 1} {
			got, err := io.ReadAll(NewReader(bytes.NewReader(packed[:n]), maxWork))
			if err != io.ErrUnexpectedEOF || !bytes.HasPrefix(plain, got) {
				t.Errorf("%d bytes: %v, %d came out", n, err, len(got))
			}
		}
		if _, err := io.ReadAll(NewReader(bytes.NewReader(append(packed, 0)), maxWork)); err != ErrCorrupt {
			t.Errorf("rubbish behind it: %v", err)
		}
	}
}

// Meta-blocks that are hardly worth their codes are not read for ever, nor are those that are all header.
func TestWork(t *testing.T) {
	var packed bytes.Buffer
	w := twin.NewWriter(&packed)
	for range 10_000 {
		_, _ = io.WriteString(w, "abcdabcdabcdabcdabcdabcd")
		_ = w.Flush()
	}
	_ = w.Close()
	if got, err := io.ReadAll(NewReader(&packed, 1<<20)); err != ErrCorrupt || len(got) < 24*200 {
		t.Errorf("%v, %d bytes", err, len(got))
	}
	r := rand.New(rand.NewPCG(3, 4))
	began := time.Now()
	for range 300 { // most of these are wrong somewhere after the header
		b := make([]byte, 20_000)
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		b[0], b[1], b[2] = 0x0b, 0xff, 0xff
		_, _ = io.Copy(io.Discard, io.LimitReader(NewReader(bytes.NewReader(b), maxWork), 1<<20))
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Whatever the twin reads comes out the same, of what is wrong nothing comes out that the twin does not read, too, and nothing makes
// it panic or hold more than the window.
func FuzzReader(f *testing.F) {
	for name, plain := range samples(f) {
		f.Add(pack(plain[:min(len(plain), 3000)], len(name)%12, 10+len(name)%15))
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		const most = 1 << 20
		r := NewReader(bytes.NewReader(packed), 1<<30)
		got, err := io.ReadAll(io.LimitReader(r, most))
		if len(r.out) > 3*MaxWindow {
			t.Fatalf("%d bytes are held", len(r.out))
		}
		want, e := io.ReadAll(io.LimitReader(twin.NewReader(bytes.NewReader(packed)), most))
		n := min(len(got), len(want))
		if !bytes.Equal(got[:n], want[:n]) || e == nil && (err != nil || len(got) < len(want)) {
			t.Fatalf("%v, %d bytes; the twin reads %d: %v", err, len(got), len(want), e)
		}
	})
}

// Whatever is packed comes out again.
func FuzzPacked(f *testing.F) {
	for _, plain := range samples(f) {
		f.Add(plain[:min(len(plain), 2000)], 9, 22, 3)
	}
	f.Fuzz(func(t *testing.T, plain []byte, level, window, times int) {
		plain = bytes.Repeat(plain, 1+times&15)
		got, err := io.ReadAll(NewReader(bytes.NewReader(pack(plain, (level&0xff)%12, 10+(window&0xff)%15)), maxWork))
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%v, %d bytes of %d", err, len(got), len(plain))
		}
	})
}

func BenchmarkReader(b *testing.B) {
	plain := samples(b)["texts"]
	packed := pack(plain, 5, 0)
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = io.Copy(io.Discard, NewReader(bytes.NewReader(packed), maxWork))
	}
}
