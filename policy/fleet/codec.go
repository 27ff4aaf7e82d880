// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/binary"
	"errors"
	"math"
)

// MaxMessage bounds the size of a message, in bytes: 8,192 quotas with all that there is to say of each, and some.
const MaxMessage = 4 << 20

// maxName bounds names of nodes and keys, in bytes.
const maxName = 256

// maxTime bounds times in messages, in ns: 31 days.
const maxTime = 31 * 24 * 3600 * 1_000_000_000

// A message on the wire is a mark, the version of the format, and parts, each with a number, a length and fields: numbers as
// variable-length integers, strings with their length before them. A reader skips parts that it does not know, and fields at
// the end of a part that it does not know; fields that are missing at the end are 0. So both sides may learn more, each at
// its own time. The version changes only with what an older reader would misunderstand.
const (
	wireMark    = 'w'
	wireVersion = 1
)

var errFormat = errors.New("not a message of this version, or not whole")

func header(kind byte) []byte { return []byte{wireMark, wireVersion, kind} }

// open checks the header, and gives what follows it.
func open(b []byte, kind byte) ([]byte, error) {
	if len(b) > MaxMessage {
		return nil, errors.New("a message that is too long")
	}
	if len(b) < 3 || b[0] != wireMark || b[1] != wireVersion || b[2] != kind {
		return nil, errFormat
	}
	return b[3:], nil
}

// A writer makes a message. The fields of a part are written after a gap for its length.
type writer struct{ b, part []byte }

func (w *writer) uint(n uint64) { w.part = binary.AppendUvarint(w.part, n) }
func (w *writer) int(n int64)   { w.uint(uint64(max(n, 0))) }
func (w *writer) text(s string) { w.uint(uint64(len(s))); w.part = append(w.part, s...) }
func (w *writer) flag(flag bool) {
	if flag {
		w.uint(1)
		return
	}
	w.uint(0)
}
func (w *writer) ints(ns ...int64) {
	for _, n := range ns {
		w.int(n)
	}
}

// end ends a part.
func (w *writer) end(number byte) {
	w.b = binary.AppendUvarint(append(w.b, number), uint64(len(w.part)))
	w.b = append(w.b, w.part...)
	w.part = w.part[:0]
}

// A reader reads the fields of a part. What is wrong makes it bad, and all that it gives then is 0.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint() uint64 {
	if len(r.b) == 0 || r.bad {
		return 0
	}
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) int() int64 {
	n := r.uint()
	if n > math.MaxInt64 {
		r.bad = true
		return 0
	}
	return int64(n)
}

func (r *reader) flag() bool { return r.uint() != 0 }

func (r *reader) text() string { return string(r.take(r.uint())) }

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// part gives the next part; number is 0 at the end.
func (r *reader) part() (number byte, fields reader) {
	if len(r.b) == 0 || r.bad {
		return 0, reader{}
	}
	number = r.b[0]
	r.b = r.b[1:]
	if number == 0 || len(r.b) == 0 {
		r.bad = true
		return 0, reader{}
	}
	return number, reader{b: r.take(r.uint())}
}
