// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
)

// parseCap bounds what is kept of a body; the rest is hashed and counted.
const parseCap = 8 << 20

// body is what is known of a request's body.
type body struct {
	head []byte // at most parseCap, in the caller's buffer
	size int64
	sum  string // hex SHA-256, empty for an empty body
}

func (b *body) whole() bool { return int64(len(b.head)) == b.size }

// readBody reads a body to its end; buf is used, or replaced, for the head.
func readBody(r io.Reader, buf []byte, hash bool) (body, error) {
	head, more, err := readHead(r, buf[:0])
	b := body{head: head, size: int64(len(head))}
	if err != nil || b.size == 0 {
		return b, err
	}
	if !more {
		if hash {
			sum := sha256.Sum256(head)
			b.sum = hex.EncodeToString(sum[:])
		}
		return b, nil
	}
	return b, b.drain(r)
}

// drain hashes and counts what lies beyond the head.
func (b *body) drain(r io.Reader) error {
	h := sha256.New()
	h.Write(b.head)
	scratch := make([]byte, 64<<10)
	// The wrapper hides any WriteTo of r, which would allocate a buffer of its own.
	n, err := io.CopyBuffer(h, struct{ io.Reader }{r}, scratch)
	b.size += n
	b.sum = hex.EncodeToString(h.Sum(nil))
	return err
}

// readHead reads up to parseCap bytes; more says that the end was not seen.
func readHead(r io.Reader, b []byte) (head []byte, more bool, err error) {
	for len(b) < parseCap {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):min(cap(b), parseCap)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, false, nil
		}
		if err != nil {
			return b, false, err
		}
	}
	return b, true, nil
}
