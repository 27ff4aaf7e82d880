// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// encoders pack as others do. (Those for zstd and brotli are short with what repeats itself.)
var encoders = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"x-gzip":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"Deflate": func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 6); return z },
	"zstd": func(w io.Writer) io.WriteCloser {
		z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		return z
	},
	"br": func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"gzip, zstd": func(w io.Writer) io.WriteCloser {
		z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		return both{gzip.NewWriter(z), z}
	},
}

type both struct {
	io.WriteCloser
	outer io.Closer
}

func (b both) Close() error {
	if err := b.WriteCloser.Close(); err != nil {
		return err
	}
	return b.outer.Close()
}

func pack(encoding string, plain []byte) []byte {
	var b bytes.Buffer
	w := encoders[encoding](&b)
	_, _ = w.Write(plain)
	_ = w.Close()
	return b.Bytes()
}

const keep = 10_000

func unseen([]byte) {}

func TestUnpack(t *testing.T) {
	var text []byte // 900 kB
	for i := range uint32(20_000) {
		text = fmt.Appendf(text, `{"role":"user","content":"how do %x do?"},`, i*2654435761)
	}
	for encoding := range encoders {
		for _, n := range []int{1, 500, keep - 1, keep, keep + 1, 2 * keep, countFactor*keep - 1, len(text)} {
			packed := pack(encoding, text[:n])
			b, ok := Unpack(encoding, packed, int64(len(packed)), keep, unseen)
			if !ok || !bytes.Equal(b.Plain, text[:min(n, keep)]) || b.Whole != (n <= keep) {
				t.Fatalf("%s, %d bytes: ok %v, %d kept, whole %v", encoding, n, ok, len(b.Plain), b.Whole)
			}
			if n < countFactor*keep && b.Length != int64(n) || b.Length < int64(min(n, countFactor*keep)) {
				t.Errorf("%s: %d bytes are %d", encoding, n, b.Length)
			}
		}
		if encoding == "gzip, zstd" {
			continue // a part of it is not known to be one
		}
		packed := pack(encoding, text)
		b, ok := Unpack(encoding, packed[:len(packed)/2], int64(len(packed)), keep, unseen)
		if !ok || b.Whole || !bytes.Equal(b.Plain, text[:len(b.Plain)]) {
			t.Errorf("%s, a part: ok %v, %d kept, whole %v", encoding, ok, len(b.Plain), b.Whole)
		}
		if _, ok := Unpack(encoding, packed[:len(packed)/2], int64(len(packed)/2), 10_000_000, unseen); ok {
			t.Errorf("%s: what is cut off is all right", encoding)
		}
	}
	for _, bad := range []string{"", "x", "\x1f\x8b", "{}", "\x28\xb5\x2f\xfd\xff"} {
		for _, encoding := range []string{"gzip", "deflate", "zstd", "br", "compress", "gzip, gzip, gzip", ""} {
			if b, ok := Unpack(encoding, []byte(bad), int64(len(bad)), keep, unseen); ok {
				t.Errorf("%q as %s is %q", bad, encoding, b.Plain)
			}
		}
	}
}

// A bomb is neither inflated further than the bound nor taken for small.
func TestBomb(t *testing.T) {
	zeros := make([]byte, 50<<20)
	for _, encoding := range []string{"gzip", "deflate", "br", "zstd"} {
		packed := pack(encoding, zeros)
		b, ok := Unpack(encoding, packed, int64(len(packed)), keep, unseen)
		if !ok || b.Whole || len(b.Plain) != keep || b.Length < 100*keep && encoding != "zstd" && encoding != "br" {
			t.Errorf("%s: ok %v, whole %v, %d kept, %d long", encoding, ok, b.Whole, len(b.Plain), b.Length)
		}
		if cap(b.Plain) > 3*keep {
			t.Errorf("%s: %d bytes are held", encoding, cap(b.Plain))
		}
	}
}

// Gzip has more to it than most send.
func TestGzipHeaders(t *testing.T) {
	var b bytes.Buffer
	for i := range 3 {
		w := gzip.NewWriter(&b)
		w.Name, w.Comment, w.Extra = strings.Repeat("n", 100*i), strings.Repeat("c", i), make([]byte, 200*i)
		_, _ = io.WriteString(w, "hello ")
		_ = w.Close()
	}
	packed := b.Bytes()
	body, ok := Unpack("gzip", packed, int64(len(packed)), keep, unseen)
	if !ok || !body.Whole || string(body.Plain) != "hello hello hello " {
		t.Errorf("%v, %+v", ok, body)
	}
	for n := range len(packed) {
		if body, ok := Unpack("gzip", packed[:n], int64(len(packed)), keep, unseen); ok && body.Whole {
			t.Errorf("%d of %d bytes are all", n, len(packed))
		}
	}
	if _, ok := Unpack("gzip", append(packed, "rubbish"...), int64(len(packed)+7), keep, unseen); ok {
		t.Error("rubbish behind it is all right")
	}
}

func TestStream(t *testing.T) {
	text := []byte(strings.Repeat("data: {}\n\n", 10_000))
	for encoding := range encoders {
		packed := pack(encoding, text)
		for _, part := range []int{len(packed), len(packed) / 2} {
			s := NewStream(encoding)
			for rest := packed[:part]; len(rest) > 0; rest = rest[min(len(rest), 100):] {
				s.Add(rest[:min(len(rest), 100)])
			}
			var got []byte
			s.End(func(b []byte) { got = append(got, b...) })
			if !bytes.HasPrefix(text, got) || part == len(packed) && len(got) != len(text) {
				t.Errorf("%s: %d bytes of %d", encoding, len(got), len(text))
			}
		}
	}
	s := NewStream("gzip")
	for range 100 {
		s.Add(make([]byte, 10_000))
	}
	s.End(func([]byte) { t.Error("what is too long was read") })
	if len(s.held) > 0 {
		t.Errorf("%d bytes are held", len(s.held))
	}
}

func FuzzUnpack(f *testing.F) {
	for encoding := range encoders {
		f.Add(encoding, pack(encoding, []byte("hello hello hello")), int64(100))
	}
	f.Fuzz(func(t *testing.T, encoding string, part []byte, more int64) {
		total := int64(len(part)) + max(more, 0)%1000
		b, ok := Unpack(encoding, part, total, keep, unseen)
		if len(b.Plain) > keep || b.Length < int64(len(b.Plain)) || ok && len(b.Plain) == 0 || b.Whole && b.Length != int64(len(b.Plain)) {
			t.Fatalf("%d kept, %d long, ok %v", len(b.Plain), b.Length, ok)
		}
	})
}
