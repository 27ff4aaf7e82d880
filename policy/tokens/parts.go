// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"unicode/utf8"
	"unsafe"
)

// parts is the count of a text that comes in parts, cut where no piece crosses.
type parts struct {
	family Family
	bytes  int
	tokens int   // for an exact family
	tally  tally // for an estimated one
}

// feed counts a part.
func (c *Counter) feed(p *parts, s string) {
	if !utf8.ValidString(s) {
		s = c.repair(s)
		defer func() { c.repaired = trim(c.repaired) }()
	}
	if qwenLinked && c.enc == encQwen {
		s = c.normal.nfc(s)
		defer c.normal.trim()
	}
	p.bytes += len(s)
	if p.family.Exact() {
		p.tokens += c.count(s)
	} else {
		c.tallyUp(s, &p.tally)
	}
}

func (p *parts) total() int {
	if p.family.Exact() || p.bytes == 0 {
		return p.tokens
	}
	p.tally.relate()
	return min(p.family.estimate(&p.tally), p.bytes) // no tokenizer's token is less than a byte
}

// partSize is how long a part is, in bytes, if the text has blanks.
const partSize = 16 << 10

// lastCut gives the last place where no piece crosses, whatever comes behind b: before a blank behind a sign or an ASCII
// letter or digit, for no piece has such a blank but as its first character. 0: there is none.
func lastCut(b []byte) int {
	for i := len(b) - 1; i > 0; i-- {
		if b[i] == ' ' && b[i-1] > ' ' && b[i-1] < 0x7F {
			return i
		}
	}
	return 0
}

// A Text is a text that comes in parts, cut anywhere; it counts as if it came at once. It holds what may still change: one
// part, or more where a text has no blank. A Set has any number of them, but one at a time is to be written to.
type Text struct {
	set     *Set
	parts   parts
	pending []byte
	search  int // pending has no place to cut before it
}

// Text begins a text.
func (s *Set) Text(f Family) Text { return Text{set: s, parts: parts{family: f}} }

// WriteString adds to the text.
func (t *Text) WriteString(s string) {
	t.pending = append(t.pending, s...)
	if len(t.pending) < partSize || len(t.pending) < 2*t.search {
		return
	}
	cut := lastCut(t.pending)
	if t.search = 0; cut == 0 {
		t.search = len(t.pending) // not again before it is twice as long
		return
	}
	t.flush(t.pending[:cut])
	t.pending = t.pending[:copy(t.pending, t.pending[cut:])]
}

func (t *Text) flush(b []byte) {
	c := t.set.counter(t.parts.family)
	c.begin()
	c.feed(&t.parts, unsafe.String(unsafe.SliceData(b), len(b)))
}

// Count ends the text and gives its tokens.
func (t *Text) Count() int64 {
	if len(t.pending) > 0 {
		t.flush(t.pending)
		t.pending = trim(t.pending)[:0]
	}
	return int64(t.parts.total())
}
