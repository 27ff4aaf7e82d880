// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// An Outline is what a JSON object says in those of its members that are short. It takes the object in pieces and holds none of
// them: who puts a picture before the model has said in a few hundred bytes at its end all that decides. It finds what
// [jsonwalk.Members] finds in the object as a whole.
type Outline struct {
	text   []byte // the members, as in the object, and the beginning of the one that is being read
	end    int    // of the members that are complete
	value  int    // where in text the value begins that is being read; 0: not yet
	state  outlineState
	depth  int  // of the value that is being read
	quoted bool // in a string
	odd    bool // of which an odd number of backslashes came last
	long   bool // the member that is being read is not kept
	lost   bool
	models int
}

type outlineState uint8

const (
	outlineStart  outlineState = iota // before the object
	outlineKey                        // before a member, or in its key
	outlineColon                      // behind the key
	outlineValue                      // before the value, or in it, if it is a string
	outlineScalar                     // in a number, true, false or null
	outlineNested                     // in an object or an array
	outlineOver                       // behind the object, or in what is none
)

const (
	maxShort   = 16 << 10 // bytes of a member that is kept
	maxOutline = 64 << 10 // of all of them
)

// Over says that nothing which comes makes a difference: the object has ended, or is none.
func (o *Outline) Over() bool { return o.state == outlineOver }

// Lost says that a member may be missing which names the model: one that is too long, or there are too many.
func (o *Outline) Lost() bool { return o.lost }

// Models is how many members there are so far that name a model.
func (o *Outline) Models() int { return o.models }

// Feed takes the next piece.
func (o *Outline) Feed(b []byte) {
	for len(b) > 0 && o.state != outlineOver {
		n := 1
		switch {
		case o.quoted:
			n = o.inString(b)
		case o.state == outlineNested:
			n = o.nested(b)
		case o.state == outlineScalar:
			n = o.scalar(b)
		default:
			o.between(b[:1])
		}
		b = b[n:]
	}
}

// between takes one byte before, between or within members, outside of keys and values.
func (o *Outline) between(b []byte) {
	c := b[0]
	if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
		return
	}
	switch o.state {
	case outlineStart:
		if c == '{' {
			o.text, o.state = append(o.text, '{'), outlineKey
			o.end = 1
		} else if bytes.IndexByte([]byte(byteOrderMark), c) < 0 {
			o.state = outlineOver
		}
	case outlineKey:
		if c == '"' {
			o.quote(b)
		} else if c != ',' {
			o.state = outlineOver
		}
	case outlineColon:
		if c != ':' {
			o.state = outlineOver
			return
		}
		o.keep(b)
		o.state, o.value = outlineValue, len(o.text)
	case outlineValue:
		o.begin(b)
	}
}

// begin takes the first byte of a value.
func (o *Outline) begin(b []byte) {
	switch c := b[0]; {
	case c == '"':
		o.quote(b)
	case c == '{', c == '[':
		o.state, o.depth = outlineNested, 1
		o.keep(b)
	case c == ',', c == '}', c == ']', c < ' ':
		o.state = outlineOver // there is no value
	default:
		o.state = outlineScalar
		o.keep(b)
	}
}

func (o *Outline) quote(b []byte) {
	o.quoted, o.odd = true, false
	o.keep(b)
}

// inString takes bytes of a string up to its end, and says how many.
func (o *Outline) inString(b []byte) int {
	for from := 0; ; {
		n := bytes.IndexByte(b[from:], '"')
		if n < 0 {
			o.odd = o.escaped(b)
			o.keep(b)
			return len(b)
		}
		end := from + n
		from = end + 1
		if !o.escaped(b[:end]) {
			o.keep(b[:from])
			o.endString()
			return from
		}
	}
}

// escaped says whether what comes behind b is.
func (o *Outline) escaped(b []byte) bool {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return (n%2 == 1) != (n == len(b) && o.odd)
}

func (o *Outline) endString() {
	o.quoted = false
	switch o.state {
	case outlineKey:
		o.state = outlineColon
	case outlineValue:
		o.endMember()
	}
}

func (o *Outline) scalar(b []byte) int {
	n := 0
	for n < len(b) && b[n] != ',' && b[n] != '}' && b[n] != ']' && b[n] > ' ' {
		n++
	}
	o.keep(b[:n])
	if n < len(b) {
		o.endMember()
	}
	return n
}

// nested takes bytes of an object or an array up to a string or its end.
func (o *Outline) nested(b []byte) int {
	for i, c := range b {
		switch c {
		case '"':
			o.keep(b[:i])
			o.quote(b[i : i+1])
			return i + 1
		case '{', '[':
			o.depth++
		case '}', ']':
			if o.depth--; o.depth == 0 {
				o.keep(b[:i+1])
				o.endMember()
				return i + 1
			}
		}
	}
	o.keep(b)
	return len(b)
}

// keep takes bytes of a member.
func (o *Outline) keep(b []byte) {
	switch {
	case o.long:
	case len(o.text)-o.end+len(b) > maxShort:
		o.long = true
		o.lost = o.lost || o.value == 0 || o.isModel()
		o.text = o.text[:o.end]
	default:
		o.text = append(o.text, b...)
	}
}

// isModel says whether the member that is being read names the model.
func (o *Outline) isModel() bool {
	key := jsonwalk.Unescape(string(o.text[o.end+1 : o.value-2]))
	return memberOf(folded(key)) == kModel
}

func (o *Outline) endMember() {
	switch {
	case o.long:
	case len(o.text) >= maxOutline:
		o.lost, o.text = true, o.text[:o.end]
	default:
		if o.isModel() {
			o.models++
		}
		o.text = append(o.text, ',')
		o.end = len(o.text)
	}
	o.state, o.value, o.long = outlineKey, 0, false
}
