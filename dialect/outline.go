// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/weirproxy/weir/policy/jsonwalk"

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
	long   bool // of the member that is being read only the key is kept
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
	maxOutline = 64 << 10 // of all of them; those that decide have another maxShort
)

// Over says that nothing which comes makes a difference: the object has ended, or is none.
func (o *Outline) Over() bool { return o.state == outlineOver }

// Lost says that a member is missing which decides: one that is too long, or there are too many of them.
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
		default:
			o.between(b[:1])
		}
		b = b[n:]
	}
}

// between takes one byte that is neither within a string nor within an object or an array.
func (o *Outline) between(b []byte) {
	c := b[0]
	if o.state == outlineScalar {
		if c > ' ' && c != ',' && c != '}' && c != ']' {
			o.keep(b)
			return
		}
		o.endMember()
	}
	if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
		return
	}
	next := outlineOver
	switch o.state {
	case outlineStart:
		if c == '{' {
			o.text, o.end, next = append(o.text, c), 1, outlineKey
		} else if c == 0xef || c == 0xbb || c == 0xbf { // a byte order mark
			next = outlineStart
		}
		o.state = next
		return
	case outlineKey:
		if c == ',' {
			return
		} else if c == '"' {
			next = outlineKey
		}
	case outlineColon:
		if c == ':' {
			next, o.value = outlineValue, len(o.text)+1
		}
	case outlineValue:
		switch {
		case c == '"':
			next = outlineValue
		case c == '{', c == '[':
			next, o.depth = outlineNested, 1
		case c != ',' && c != '}' && c != ']' && c > ' ':
			next = outlineScalar
		}
	}
	o.state, o.quoted, o.odd = next, c == '"', false
	o.keep(b)
}

// inString takes bytes of a string up to its end, and says how many.
func (o *Outline) inString(b []byte) (n int) {
	for {
		i := jsonwalk.IndexByte(text(b[n:]), '"')
		if i < 0 {
			i = len(b) - n
		}
		n += i
		odd := o.escaped(b[:n])
		if n == len(b) {
			o.odd = odd
			break
		}
		if n++; !odd {
			o.quoted = false
			break
		}
	}
	o.keep(b[:n])
	switch {
	case o.quoted:
	case o.state == outlineKey:
		o.state = outlineColon
	case o.state == outlineValue:
		o.endMember()
	}
	return n
}

// escaped says whether what comes behind b is.
//
//go:noinline
func (o *Outline) escaped(b []byte) bool {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return (n%2 == 1) != (n == len(b) && o.odd)
}

// nested takes bytes of an object or an array up to a string or its end.
func (o *Outline) nested(b []byte) (n int) {
	for n < len(b) && !o.quoted && o.depth > 0 {
		switch b[n] {
		case '"':
			o.quoted, o.odd = true, false
		case '{', '[':
			o.depth++
		case '}', ']':
			o.depth--
		}
		n++
	}
	o.keep(b[:n])
	if o.depth == 0 {
		o.endMember()
	}
	return n
}

// keep takes bytes of a member.
//
//go:noinline
func (o *Outline) keep(b []byte) {
	switch {
	case o.long:
	case len(o.text)-o.end+len(b) <= maxShort:
		o.text = append(o.text, b...)
	case o.value == 0: // a key that nobody has
		o.lost, o.state = true, outlineOver
	default:
		o.long, o.text = true, o.text[:o.value]
	}
}

// member is what the member that is being read says.
//
//go:noinline
func (o *Outline) member() member {
	return memberOf(folded(jsonwalk.Unescape(string(o.text[o.end+1 : o.value-2]))))
}

// endMember keeps the member, or not. What is short may be much in an honest body, too: then only what decides is kept.
func (o *Outline) endMember() {
	is, size := o.member(), len(o.text)
	switch decides := is < numNumbers || is >= kOptions && is < numMembers; {
	case o.long && is != kModel && is >= numNumbers, size >= maxOutline && !decides:
		o.text = o.text[:o.end]
	case o.long, size >= maxOutline+maxShort:
		o.lost, o.text = true, o.text[:o.end]
	default:
		if is == kModel {
			o.models++
		}
		o.text = append(o.text, ',')
		o.end = len(o.text)
	}
	o.state, o.value, o.long = outlineKey, 0, false
}
