// SPDX-License-Identifier: Apache-2.0

package zstd

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	twin "github.com/klauspost/compress/zstd"
)

const maxBlocks = 5000

func pack(t testing.TB, plain []byte, options ...twin.EOption) []byte {
	w, err := twin.NewWriter(nil, append(options, twin.WithEncoderConcurrency(1))...)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(plain, nil)
}

// samples are bodies of many kinds: text, noise of few and of many symbols, long runs, and what is far back.
func samples() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	noise := func(n, symbols int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.IntN(symbols))
		}
		return b
	}
	words := strings.Fields(`{"model":"gpt","messages":[{"role":"user","content": the quick brown fox jumps over lazy dog , "} ]}`)
	var text strings.Builder
	for text.Len() < 300_000 {
		text.WriteString(words[r.IntN(len(words))] + " ")
	}
	far := append(append(noise(200_000, 256), make([]byte, 300_000)...), noise(100, 256)...)
	m := map[string][]byte{
		"empty": {}, "a byte": {'x'}, "text": []byte(text.String()), "a run": make([]byte, 1<<20),
		"far": append(far, far[:200_000]...), "skewed": nil,
	}
	for _, symbols := range []int{2, 3, 17, 100, 200, 256} {
		for _, n := range []int{5, 100, 1000, 70_000} {
			m[fmt.Sprint(symbols, " symbols, ", n)] = noise(n, symbols)
		}
	}
	for range 50_000 {
		m["skewed"] = append(m["skewed"], byte(min(r.ExpFloat64()*9, 255)))
	}
	return m
}

// What the twin packs at any level comes out again.
func TestRoundTrip(t *testing.T) {
	for name, plain := range samples() {
		for _, level := range []twin.EncoderLevel{twin.SpeedFastest, twin.SpeedDefault, twin.SpeedBetterCompression, twin.SpeedBestCompression} {
			for _, options := range [][]twin.EOption{{}, {twin.WithSingleSegment(true)}, {twin.WithWindowSize(1 << 10)}, {twin.WithEncoderCRC(false)}, {twin.WithAllLitEntropyCompression(true)}} {
				packed := pack(t, plain, append(options, twin.WithEncoderLevel(level))...)
				packed = append(packed, packed...) // two frames
				got, err := io.ReadAll(NewReader(bytes.NewReader(packed), maxBlocks))
				if err != nil || !bytes.Equal(got, append(plain[:len(plain):len(plain)], plain...)) {
					t.Fatalf("%s at %v: %v, %d bytes of %d", name, level, err, len(got), 2*len(plain))
				}
			}
		}
	}
}

// Of a part of a stream all comes out that is there, and then its end is unexpected.
func TestPart(t *testing.T) {
	plain := samples()["text"]
	packed := pack(t, plain)
	for _, n := range []int{1, 3, 5, 1000, len(packed) / 2, len(packed) - 1} {
		got, err := io.ReadAll(NewReader(bytes.NewReader(packed[:n]), maxBlocks))
		if err != io.ErrUnexpectedEOF || !bytes.HasPrefix(plain, got) {
			t.Errorf("%d bytes: %v, %d came out", n, err, len(got))
		}
	}
}

// Blocks that are hardly worth their tables are not read for ever.
func TestManySmallBlocks(t *testing.T) {
	var packed bytes.Buffer
	w, err := twin.NewWriter(&packed, twin.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * maxBlocks {
		_, _ = io.WriteString(w, strings.Repeat("abcd", 20))
		_ = w.Flush()
	}
	_ = w.Close()
	if got, err := io.ReadAll(NewReader(&packed, maxBlocks)); err != ErrCorrupt || len(got) != 80*maxBlocks {
		t.Errorf("%v, %d bytes", err, len(got))
	}
}

// Whatever the twin reads comes out the same, and nothing makes it panic or hold more than the window and a block.
func FuzzReader(f *testing.F) {
	for _, plain := range samples() {
		f.Add(pack(f, plain[:min(len(plain), 3000)]))
	}
	f.Add([]byte{0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9})
	w, err := twin.NewReader(nil, twin.WithDecoderConcurrency(1), twin.WithDecoderMaxWindow(MaxWindow), twin.IgnoreChecksum(true))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		const most = 1 << 20
		r := NewReader(bytes.NewReader(packed), maxBlocks)
		got, err := io.ReadAll(io.LimitReader(r, most))
		if len(r.out) > 2*MaxWindow+2*maxBlock {
			t.Fatalf("%d bytes are held", len(r.out))
		}
		if e := w.Reset(bytes.NewReader(packed)); e != nil {
			t.Fatal(e)
		}
		want, e := io.ReadAll(io.LimitReader(w, most))
		if e == nil && (err != nil || !bytes.Equal(got, want)) {
			t.Fatalf("%v, %d bytes; the twin reads %d", err, len(got), len(want))
		}
	})
}

func BenchmarkReader(b *testing.B) {
	plain := samples()["text"]
	packed := pack(b, plain)
	b.SetBytes(int64(len(plain)))
	for b.Loop() {
		_, _ = io.Copy(io.Discard, NewReader(bytes.NewReader(packed), maxBlocks))
	}
}
