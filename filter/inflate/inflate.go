// SPDX-License-Identifier: Apache-2.0

// Package inflate reads bodies that are compressed, within bounds of time and memory. What passes on is never changed.
package inflate

import (
	"bytes"
	"io"
	"strings"

	"github.com/weirproxy/weir/filter/inflate/brotli"
	"github.com/weirproxy/weir/filter/inflate/zstd"
)

// Encoded says whether a content-encoding is one that is undone here.
func Encoded(encoding string) bool { return encoding != "" && len(codings(encoding)) > 0 }

// Unknown says whether a body has a content-encoding that is not undone here, and that HTTP has.
func Unknown(encoding string) bool {
	for _, c := range strings.Split(encoding, ",") {
		if strings.EqualFold(strings.TrimSpace(c), "compress") {
			return true
		}
	}
	return false
}

// UnknownFactor is how many times longer a body that cannot be undone is taken to be than it came: JSON with text in it is rarely
// packed better.
const UnknownFactor = 8

// maxCodings is how many codings may be on top of each other.
const maxCodings = 2

// codings lists those of a content-encoding, the outermost first; none if one of them is not known.
func codings(encoding string) (list []string) {
	for _, c := range strings.Split(encoding, ",") {
		switch c = strings.ToLower(strings.TrimSpace(c)); c {
		case "", "identity":
		case "gzip", "x-gzip", "deflate", "br", "zstd":
			list = append([]string{c}, list...)
		default:
			return nil
		}
	}
	if len(list) > maxCodings {
		return nil
	}
	return list
}

// A Body is what is known of a compressed body.
type Body struct {
	Plain  []byte // its beginning
	Whole  bool   // that is all
	Length int64  // how long it is in all, or about so
}

// Unpack undoes a content-encoding of a body of which a part is there, of total bytes. Of what comes out the first keep bytes are kept, and
// countFactor times as much is counted, and shown to each in pieces where that is more; what is longer counts in proportion to what
// went in. ok: something could be read, and nothing is wrong with what was.
func Unpack(encoding string, part []byte, total, keep int64, each func(piece []byte)) (b Body, ok bool) {
	in := bytes.NewReader(part)
	r, err := reader(encoding, in, bodyBlocks)
	if err != nil {
		return b, false
	}
	b.Plain, err = head(r, keep)
	b.Length = int64(len(b.Plain))
	if err == nil || int64(len(part)) < total {
		each(b.Plain)
	}
	if err == nil {
		var n int64
		n, err = skip(r, (countFactor-1)*keep, each)
		b.Length += n
	}
	switch {
	case err == io.EOF:
		b.Whole = b.Length == int64(len(b.Plain)) && int64(len(part)) == total
	case err == nil, err == io.ErrUnexpectedEOF && int64(len(part)) < total: // more would have come
		taken := float64(max(len(part)-in.Len(), 1))
		b.Length = int64(min(float64(b.Length)*max(float64(total)/taken, 1), maxLength))
	default:
		return Body{}, false
	}
	return b, len(b.Plain) > 0
}

// maxLength is what the length of anything longer is taken for.
const maxLength = 1 << 40

// countFactor is how many times what is kept is inflated to learn how long a body is.
const countFactor = 4

// reader undoes a content-encoding.
func reader(encoding string, in *bytes.Reader, blocks int) (r io.Reader, err error) {
	list := codings(encoding)
	if len(list) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	r = in
	for _, c := range list {
		if r, err = one(c, r, blocks); err != nil {
			return nil, err
		}
	}
	return guarded{r}, nil
}

// bodyBlocks is how many blocks of zstd a body may have: who packs it at once makes one of each 128 KiB. An answer may be
// packed event by event. brotliWork is what reading brotli may cost for each.
const (
	bodyBlocks   = 4096
	answerBlocks = 1 << 16
	brotliWork   = 1 << 10
)

func one(coding string, in io.Reader, blocks int) (io.Reader, error) {
	switch coding {
	case "deflate":
		return deflate(in)
	case "br":
		return brotli.NewReader(in, blocks*brotliWork), nil
	case "zstd":
		return zstd.NewReader(in, blocks), nil
	}
	return newGzip(in)
}

// A guarded reader makes an error of a panic: what it reads comes from anybody.
type guarded struct{ r io.Reader }

func (g guarded) Read(b []byte) (n int, err error) {
	defer func() {
		if recover() != nil {
			n, err = 0, io.ErrNoProgress
		}
	}()
	return g.r.Read(b)
}

// head reads up to most bytes; io.EOF if these were all.
func head(r io.Reader, most int64) (b []byte, err error) {
	for err == nil && int64(len(b)) < most {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		var n int
		n, err = r.Read(b[len(b):min(int64(cap(b)), most)])
		b = b[:len(b)+n]
	}
	return b, err
}

// skip reads up to most bytes and says how many there were.
func skip(r io.Reader, most int64, each func(piece []byte)) (n int64, err error) {
	var scratch [16 << 10]byte
	for err == nil && n < most {
		var k int
		k, err = r.Read(scratch[:])
		each(scratch[:k])
		n += int64(k)
	}
	return n, err
}
