// SPDX-License-Identifier: Apache-2.0

package brotli

import "io"

// A bitReader reads bits, the lowest of each byte first. Beyond the end there are zeros, and short is set when they are taken.
type bitReader struct {
	in    io.Reader
	buf   [64]byte // few, so that what was read says how much was used
	at    int      // in buf
	have  int      // in it
	end   error    // of in
	bits  uint64
	n     int // how many
	short bool
}

// more makes it 56 bits at least, or all that there are.
func (b *bitReader) more() {
	for b.n <= 56 {
		if b.at == b.have && !b.read() {
			return
		}
		b.bits |= uint64(b.buf[b.at]) << b.n
		b.at, b.n = b.at+1, b.n+8
	}
}

func (b *bitReader) read() bool {
	b.at, b.have = 0, 0
	for tries := 0; b.end == nil && b.have == 0; tries++ {
		if b.have, b.end = b.in.Read(b.buf[:]); b.have == 0 && tries == 100 {
			b.end = io.ErrNoProgress
		}
	}
	return b.have > 0
}

// peek gives the next bits, at most 56.
func (b *bitReader) peek(k int) int {
	if b.n < k {
		b.more()
	}
	return int(b.bits & (1<<k - 1))
}

// drop takes bits that were looked at.
func (b *bitReader) drop(k int) {
	if b.n < k {
		b.short, b.n, b.bits = true, k, 0
	}
	b.bits >>= k
	b.n -= k
}

func (b *bitReader) take(k int) int {
	v := b.peek(k)
	b.drop(k)
	return v
}

func (b *bitReader) flag() bool { return b.take(1) == 1 }

// align goes to the next whole byte. The bits before it must be zeros.
func (b *bitReader) align() bool { return b.take(b.n&7) == 0 }

// count reads a number from 1 to 256.
func (b *bitReader) count() int {
	if !b.flag() {
		return 1
	}
	k := b.take(3)
	return 1<<k + 1 + b.take(k)
}

// atEnd says whether there are no more bytes.
func (b *bitReader) atEnd() bool {
	b.more()
	return b.n == 0
}

// failed is what is wrong with the input itself, as opposed to what it says.
func (b *bitReader) failed() error {
	switch {
	case !b.short:
		return nil
	case b.end == nil || b.end == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return b.end
}
