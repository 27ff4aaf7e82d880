// SPDX-License-Identifier: Apache-2.0

// Package zstd decompresses Zstandard frames (RFC 8878), and does no more than that: no compression, no dictionaries, no
// checksums, which the receiver looks at. (RATIONALE.md, "Why readers of zstd and brotli of our own?")
package zstd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// ErrCorrupt is what is wrong with anything that is no sequence of frames.
var ErrCorrupt = errors.New("zstd: corrupt input")

// MaxWindow is the largest window of a frame: what RFC 8878 asks every decoder for.
const MaxWindow = 8 << 20

const (
	magic     = 0xFD2FB528
	skippable = 0x184D2A50 // and the next 15
	maxBlock  = 128 << 10
)

// A Reader decompresses a stream.
type Reader struct {
	in     *bufio.Reader
	err    error
	out    []byte // what was decompressed, as far back as the window reaches
	given  int    // of out
	start  int    // of the frame in out
	window int
	inside bool // a frame
	sum    bool // a checksum follows it
	blocks int  // that may still come compressed

	block    []byte
	literals []byte
	huffman  huffman
	tables   [3]table // of literal lengths, offsets and match lengths
	repeats  [3]int   // the last offsets
}

// NewReader begins a stream of at most so many compressed blocks: each may have tables of its own, which take longer to make than
// a few bytes take to read.
func NewReader(in io.Reader, blocks int) *Reader {
	return &Reader{in: bufio.NewReader(in), blocks: blocks}
}

// Read reads plain bytes.
func (r *Reader) Read(b []byte) (int, error) {
	for r.given == len(r.out) && r.err == nil {
		r.trim()
		if r.inside {
			r.err = r.nextBlock()
		} else {
			r.err = r.nextFrame()
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
	if over := len(r.out) - r.window; over > r.window && over > maxBlock {
		r.out = r.out[:copy(r.out, r.out[over:])]
		r.given, r.start = len(r.out), max(r.start-over, 0)
	}
}

// bytes reads so many; they are valid until the next call. Where the input ends before, that is unexpected.
func (r *Reader) bytes(n int) ([]byte, error) {
	if cap(r.block) < n {
		r.block = make([]byte, n)
	}
	_, err := io.ReadFull(r.in, r.block[:n])
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return r.block[:n], err
}

// nextFrame reads the header of a frame; io.EOF if there is none.
func (r *Reader) nextFrame() error {
	if _, err := r.in.Peek(1); err != nil {
		return err
	}
	b, err := r.bytes(4)
	if err != nil {
		return err
	}
	switch m := binary.LittleEndian.Uint32(b); {
	case m == magic:
		return r.header()
	case m&^15 == skippable:
		if b, err = r.bytes(4); err != nil {
			return err
		}
		size := int64(binary.LittleEndian.Uint32(b))
		if n, err := io.CopyN(io.Discard, r.in, size); err != nil && n < size {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	return ErrCorrupt
}

// header reads what stands behind the magic number.
func (r *Reader) header() error {
	b, err := r.bytes(1)
	if err != nil {
		return err
	}
	d := b[0]
	single, window := d>>5&1 == 1, 1
	if single {
		window = 0
	}
	dictionary, content := [4]int{0, 1, 2, 4}[d&3], [4]int{0, 2, 4, 8}[d>>6]
	if content == 0 {
		content = 1 - window
	}
	if b, err = r.bytes(window + dictionary + content); err != nil {
		return err
	}
	if d>>3&1 == 1 || little(b[window:window+dictionary]) != 0 {
		return ErrCorrupt
	}
	size := little(b[window+dictionary:])
	if content == 2 {
		size += 256
	}
	if !single {
		size = uint64(1) << (10 + b[0]>>3)
		size += size / 8 * uint64(b[0]&7)
	}
	return r.begin(size, single, d>>2&1 == 1)
}

// begin begins a frame. One in a single segment has its content for a window, of any size.
func (r *Reader) begin(window uint64, single, sum bool) error {
	if window > MaxWindow && !single {
		return ErrCorrupt
	}
	r.window = int(min(window, MaxWindow))
	r.inside, r.sum, r.start = true, sum, len(r.out)
	r.repeats, r.huffman.bits = [3]int{1, 4, 8}, 0
	for i := range r.tables {
		r.tables[i].rows = r.tables[i].rows[:0]
	}
	return nil
}

func little(b []byte) (n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n
}

// nextBlock decompresses a block.
func (r *Reader) nextBlock() error {
	b, err := r.bytes(3)
	if err != nil {
		return err
	}
	h := int(little(b))
	size := h >> 3
	if size > maxBlock {
		return ErrCorrupt
	}
	last := h&1 == 1
	switch h >> 1 & 3 {
	case 0:
		if b, err = r.bytes(size); err == nil {
			r.out = append(r.out, b...)
		}
	case 1:
		if b, err = r.bytes(1); err == nil {
			r.out = repeat(r.out, b[0], size)
		}
	case 2:
		if b, err = r.bytes(size); err == nil {
			err = r.compressed(b)
		}
	default:
		err = ErrCorrupt
	}
	if err != nil || !last {
		return err
	}
	r.inside = false
	if r.sum {
		_, err = r.bytes(4)
	}
	return err
}

func repeat(to []byte, b byte, n int) []byte {
	for range n {
		to = append(to, b)
	}
	return to
}

// compressed decompresses a block that has literals and sequences.
func (r *Reader) compressed(b []byte) error {
	if r.blocks--; r.blocks < 0 {
		return ErrCorrupt
	}
	rest, err := r.readLiterals(b)
	if err != nil {
		return err
	}
	return r.sequences(rest)
}
