// SPDX-License-Identifier: Apache-2.0

package brotli

import "io"

// metaBlock reads the header of the next meta-block, or the stream's before the first.
func (r *Reader) metaBlock() error {
	if r.window == 0 {
		if err := r.header(); err != nil {
			return err
		}
	}
	if r.last {
		return r.finish()
	}
	if r.last = r.bits.flag(); r.last && r.bits.flag() {
		return r.bits.failed() // it is empty
	}
	r.raw = false
	nibbles := r.bits.take(2) + 4
	if nibbles == 7 {
		return r.metadata()
	}
	r.left = r.bits.take(4*nibbles) + 1
	if nibbles > 4 && (r.left-1)>>(4*nibbles-4) == 0 {
		return ErrCorrupt
	}
	if !r.last {
		if r.raw = r.bits.flag(); r.raw && !r.bits.align() {
			return ErrCorrupt
		}
	}
	if err := r.bits.failed(); err != nil || r.raw {
		return err
	}
	if err := r.compressed(); err != nil {
		r.left = 0
		return err
	}
	return r.bits.failed()
}

// header reads the size of the window.
func (r *Reader) header() error {
	size := 16
	if r.bits.flag() {
		if n := r.bits.take(3); n > 0 {
			size = 17 + n
		} else if n = r.bits.take(3); n == 1 {
			return ErrCorrupt // a large window, which is not in the RFC
		} else if n > 0 {
			size = 8 + n
		} else {
			size = 17
		}
	}
	r.window = 1<<size - 16
	return r.bits.failed()
}

// finish looks at what follows the last meta-block: nothing may.
func (r *Reader) finish() error {
	if !r.bits.align() || !r.bits.atEnd() {
		return ErrCorrupt
	}
	if r.bits.end != io.EOF {
		return r.bits.end
	}
	return io.EOF
}

// metadata skips what is not for us.
func (r *Reader) metadata() error {
	if r.bits.flag() {
		return ErrCorrupt
	}
	n := r.bits.take(2)
	skip := r.bits.take(8 * n)
	if n > 1 && skip>>(8*n-8) == 0 {
		return ErrCorrupt
	}
	if n > 0 {
		skip++
	}
	if !r.bits.align() {
		return ErrCorrupt
	}
	for ; skip > 0 && !r.bits.short; skip-- {
		r.bits.take(8)
	}
	return r.bits.failed()
}

// compressed reads the header of a meta-block that is compressed.
func (r *Reader) compressed() error {
	for _, k := range []*blocks{&r.literal, &r.commands, &r.distances} {
		if err := r.blockTypes(k); err != nil {
			return err
		}
	}
	r.postfix = r.bits.take(2)
	r.direct = r.bits.take(4) << r.postfix
	for i := range r.literal.types {
		r.modes[i] = mode(r.bits.take(2))
	}
	literals, err := r.contextMap(&r.literal, 64)
	if err != nil {
		return err
	}
	distances, err := r.contextMap(&r.distances, 4)
	if err != nil {
		return err
	}
	if err := r.readCodes(&r.literal, literals, 256); err != nil {
		return err
	}
	if err := r.readCodes(&r.commands, r.commands.types, numCommands); err != nil {
		return err
	}
	return r.readCodes(&r.distances, distances, shortDistance+r.direct+48<<r.postfix)
}
