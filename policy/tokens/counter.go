// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"unicode/utf8"
	"unsafe"
)

// Counter counts the tokens of one family. It holds a cache and the space of a merge, 68 KB together, and is not safe for
// concurrent use.
type Counter struct {
	family Family
	enc    encoding
	rules  rules
	cache  [cacheSize]uint64 // of merged pieces: 56 bits of the hash, 8 bits of the count
	merger
	work
	normal   normal
	repaired []byte // a text with its invalid bytes replaced
	decoded  []byte // a part of a JSON string with its escapes resolved
}

const (
	cacheSize = 4096
	// The hash has no secret, so who looks for it can find in seconds a text with the hash of another. To gain him little,
	// the hash is believed for short pieces only: that it is a token, up to wholeMax bytes (longer tokens come out of the
	// merge); that the cache has it, up to cacheMax.
	wholeMax = 16
	cacheMax = 64
	// scratchMax is the largest buffer that is kept from one text to the next.
	scratchMax = 1 << 20
)

// New returns a Counter for f.
func New(f Family) *Counter {
	if len(table) != tableSize || !extrasFit() {
		panic("tokens: table.bin and slots.go do not belong together") // the loads from the table are unchecked
	}
	e := f.encoding()
	c := &Counter{family: f, enc: e, rules: rulesOf(e)}
	c.view = viewOf(e)
	return c
}

// Count gives the number of tokens of s as ordinary text: what looks like a special token is none. Each byte that is no
// part of valid UTF-8 counts as one U+FFFD, as encoding/json reads it.
func (c *Counter) Count(s string) int { return c.countFor(c.family, s) }

// countFor is Count for any family of the counter's encoding.
func (c *Counter) countFor(f Family, s string) int {
	p := parts{family: f}
	c.begin()
	c.feed(&p, s)
	return p.total()
}

// CountBytes is Count for bytes, without a copy.
func (c *Counter) CountBytes(b []byte) int {
	return c.Count(unsafe.String(unsafe.SliceData(b), len(b)))
}

// repair replaces each invalid byte by U+FFFD.
func (c *Counter) repair(s string) string {
	need := 0
	for _, r := range s {
		need += utf8.RuneLen(r)
	}
	b := sized(c.repaired, need)
	for _, r := range s {
		b = utf8.AppendRune(b, r)
	}
	c.repaired = b
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// sized empties b, or makes a larger one if it cannot hold n bytes.
func sized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, 0, n)
	}
	return b[:0]
}

// trim gives up a buffer that one large text made, so that it does not stay for ever.
func trim(b []byte) []byte {
	if cap(b) > scratchMax {
		return nil
	}
	return b
}
