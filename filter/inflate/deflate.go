// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bufio"
	"compress/flate"
	"errors"
	"io"
)

// What is around a deflated stream is read here, not by the packages for it: they add 40 KB to the filter. Checksums are the
// receiver's to look at.

var errHeader = errors.New("inflate: no gzip or zlib")

// deflate undoes what the name stands for, zlib, or what some send under it: the bare stream.
func deflate(in io.Reader) (io.Reader, error) {
	b := buffer(in)
	first, err := b.Peek(2)
	if err != nil {
		return nil, err
	}
	if first[0]&15 == 8 && (int(first[0])<<8|int(first[1]))%31 == 0 {
		if first[1]&0x20 != 0 { // it needs a dictionary
			return nil, errHeader
		}
		_, _ = b.Discard(2)
		return &trailed{in: b, plain: flate.NewReader(b), trailer: 4}, nil
	}
	return flate.NewReader(b), nil
}

func buffer(in io.Reader) *bufio.Reader { return bufio.NewReaderSize(in, 64) }

// A trailed reader also needs what follows the stream.
type trailed struct {
	in      *bufio.Reader
	plain   io.Reader
	trailer int
}

func (t *trailed) Read(b []byte) (n int, err error) {
	if n, err = t.plain.Read(b); err == io.EOF {
		if k, _ := t.in.Discard(t.trailer); k < t.trailer {
			err = io.ErrUnexpectedEOF
		}
		t.trailer = 0
	}
	return n, err
}

// A gzipReader undoes gzip (RFC 1952): members, one after the other.
type gzipReader struct {
	in     *bufio.Reader
	member io.Reader
	plain  io.ReadCloser
}

func newGzip(in io.Reader) (io.Reader, error) {
	g := &gzipReader{in: buffer(in)}
	return g, g.next()
}

func (g *gzipReader) Read(b []byte) (n int, err error) {
	for n == 0 && err == nil && len(b) > 0 {
		if n, err = g.member.Read(b); err == io.EOF {
			if _, end := g.in.Peek(1); end != nil {
				return n, end
			}
			err = g.next()
		}
	}
	return n, err
}

// next begins the next member.
func (g *gzipReader) next() error {
	if err := g.header(); err != nil {
		return err
	}
	if g.plain == nil {
		g.plain = flate.NewReader(g.in)
	} else if err := g.plain.(flate.Resetter).Reset(g.in, nil); err != nil {
		return err
	}
	g.member = &trailed{in: g.in, plain: g.plain, trailer: 8}
	return nil
}

// header skips a member's header.
func (g *gzipReader) header() error {
	h := make([]byte, 10)
	if _, err := io.ReadFull(g.in, h); err != nil {
		return io.ErrUnexpectedEOF
	}
	if h[0] != 0x1f || h[1] != 0x8b || h[2] != 8 || h[3]&0xe0 != 0 {
		return errHeader
	}
	flags := h[3]
	if flags&4 != 0 { // extra fields
		if _, err := io.ReadFull(g.in, h[:2]); err != nil {
			return io.ErrUnexpectedEOF
		}
		if _, err := g.in.Discard(int(h[0]) | int(h[1])<<8); err != nil {
			return io.ErrUnexpectedEOF
		}
	}
	for _, text := range []byte{8, 16} { // name, comment
		for c := byte(1); flags&text != 0 && c != 0; {
			var err error
			if c, err = g.in.ReadByte(); err != nil {
				return io.ErrUnexpectedEOF
			}
		}
	}
	if flags&2 != 0 { // a checksum of the header
		if _, err := g.in.Discard(2); err != nil {
			return io.ErrUnexpectedEOF
		}
	}
	return nil
}
