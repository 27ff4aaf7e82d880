// SPDX-License-Identifier: Apache-2.0

// Package brotli decompresses brotli (RFC 7932), and does no more than that. (RATIONALE.md, "Why readers of zstd and brotli of our own?")
package brotli

import (
	"errors"
	"io"
)

// ErrCorrupt is what is wrong with anything that is no brotli, or takes more work than it was allowed.
var ErrCorrupt = errors.New("brotli: corrupt input")

// MaxWindow is how far back a copy may reach. Streams may have windows of twice that, but hardly any has.
const MaxWindow = 8 << 20

// chunk is how much is decompressed at a time.
const chunk = 32 << 10

// A Reader decompresses a stream.
type Reader struct {
	bits   bitReader
	err    error
	out    []byte // what was decompressed, as far back as the window reaches
	given  int    // of out
	total  int    // bytes decompressed
	window int    // 0: not known yet
	work   int    // that may still be done on codes, beside what total allows for

	last    bool // the meta-block is the last
	raw     bool // and not compressed
	left    int  // of the meta-block
	insert  int  // literals that come now
	copying bool // a copy follows them
	length  int  // of it
	same    bool // it is from the last distance
	copy    int  // bytes to copy now
	from    int  // how far back
	ring    [4]int

	literal, commands, distances blocks
	modes                        [256]mode
	postfix, direct              int // of distances
	scratch                      [numCommands]uint8
}

// NewReader begins a stream. work bounds what its codes may cost beside what comes out: one takes longer to make than the few
// bytes that it is written in take to read. What comes out allows for more, see spend.
func NewReader(in io.Reader, work int) *Reader {
	return &Reader{bits: bitReader{in: in}, work: work, ring: [4]int{4, 11, 15, 16}}
}

// Read reads plain bytes.
func (r *Reader) Read(b []byte) (int, error) {
	if r.given == len(r.out) {
		r.trim()
	}
	for r.given == len(r.out) && r.err == nil {
		for r.err == nil && len(r.out)-r.given < chunk {
			if r.err = r.step(); r.err != nil && r.bits.short {
				r.err = r.bits.failed()
			}
		}
	}
	n := copy(b, r.out[r.given:])
	if r.given += n; n > 0 || len(b) == 0 {
		return n, nil
	}
	return 0, r.err
}

// trim forgets what is out of the window, half of the time.
func (r *Reader) trim() {
	keep := min(r.window, MaxWindow)
	if over := len(r.out) - keep; over > max(keep, chunk) {
		r.out = r.out[:copy(r.out, r.out[over:])]
		r.given = len(r.out)
	}
}

// spend accounts for work, about an entry of a table each. What was compressed at once needs one for every fourth byte of text,
// and for nearly every byte of numbers.
func (r *Reader) spend(work int) error {
	if r.work -= work; r.work+r.total < 0 {
		return ErrCorrupt
	}
	return nil
}

// step goes on: by a header, some bytes, or a command.
func (r *Reader) step() error {
	switch {
	case r.copy > 0:
		r.goOn()
		return nil
	case r.insert > 0:
		return r.literals()
	case r.left == 0:
		r.copying = false // after the literals that end a meta-block nothing is copied
		return r.metaBlock()
	case r.raw:
		return r.plain()
	case r.copying:
		return r.beginCopy()
	}
	return r.command()
}

// plain takes bytes that are not compressed.
func (r *Reader) plain() error {
	for range min(r.left, chunk) {
		v := r.bits.take(8)
		if r.bits.short {
			break
		}
		r.out = append(r.out, byte(v))
		r.left--
		r.total++
	}
	return r.bits.failed()
}
