// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/weirproxy/weir/policy/jsonwalk"

// A want is a member of an answer, or of an object in it (response, usage), and what takes it.
type want struct {
	key, inner string
	take       func(*Answer, jsonwalk.Value)
}

// A jsonScanner finds the values of a few members in a JSON document that comes in chunks, without holding it: only the
// values are kept, each up to maxValue bytes. It also adds up the bytes in strings, for a guess where no usage is.
type jsonScanner struct {
	wanted []want
	value  []byte          // of the member that is being kept
	keys   [2][maxKey]byte // of the members at the top and in one of them
	keyLen [2]int
	hasKey [2]bool
	inside bool // the member at the top is an object in which something is wanted
	depth  int
	state  scanState
	which  int // index into wanted of the member being kept, -1 for none
	text   int64
	escape bool
	small  [256]byte // where most values fit
}

type scanState uint8

const (
	scanValue  scanState = iota // between tokens
	scanString                  // in a string that is a value, or a key that does not matter
	scanKey                     // in a key
)

const (
	maxValue = 16 << 10
	maxKey   = 64
)

// begins makes ready a scanner that was not used yet.
func (s *jsonScanner) begins(wanted []want) {
	s.wanted, s.which, s.value = wanted, -1, s.small[:0]
}

// feed takes a chunk, and gives the answer each wanted value that it completes.
func (s *jsonScanner) feed(chunk []byte, to *Answer) {
	for i := 0; i < len(chunk); {
		if s.state != scanValue {
			i += s.inString(chunk[i:])
			continue
		}
		from := i
		for i < len(chunk) && plain[chunk[i]] {
			i++
		}
		if s.which >= 0 {
			s.hold(chunk[from:i])
		}
		if i < len(chunk) {
			s.between(chunk[i:i+1], to)
			i++
			if chunk[i-1] == ':' {
				i += s.atOnce(text(chunk[i:]))
			}
		}
	}
}

// atOnce takes the value of a member at the top that is all in the chunk and in which nothing is wanted, and says how many bytes it took. It
// does what the other way would do byte by byte.
func (s *jsonScanner) atOnce(chunk string) int {
	i := jsonwalk.SkipSpace(chunk, 0)
	if s.depth != 1 || !s.hasKey[0] || s.inside || i == len(chunk) || chunk[i] != '"' && chunk[i] != '{' && chunk[i] != '[' {
		return 0
	}
	end, texts, whole := jsonwalk.Texts(chunk, i)
	switch {
	case !whole, s.which >= 0 && len(s.value)+end > maxValue:
		return 0
	case s.which >= 0:
		s.value = append(s.value, chunk[:end]...)
	default:
		s.text += int64(texts)
	}
	return end
}

// plain are the bytes outside strings that mean nothing to the scanner.
var plain = func() (t [256]bool) {
	for i := range t {
		t[i] = true
	}
	for _, b := range `"{}[],:` {
		t[b] = false
	}
	return t
}()

// inString takes bytes of a string up to its end or an escape, and says how many.
func (s *jsonScanner) inString(chunk []byte) int {
	if s.escape {
		s.escape = false
		s.put(chunk[:1])
		return 1
	}
	i := 0
	for i < len(chunk) && chunk[i] != '"' && chunk[i] != '\\' {
		i++
	}
	if i < len(chunk) && chunk[i] == '\\' {
		s.escape = true
		s.put(chunk[:i+1])
		return i + 1
	}
	if i == len(chunk) {
		s.put(chunk)
		return i
	}
	if s.state == scanKey {
		s.put(chunk[:i])
	} else {
		s.put(chunk[:i+1])
	}
	s.state = scanValue
	return i + 1
}

// put takes bytes of a string.
func (s *jsonScanner) put(b []byte) {
	switch {
	case s.state == scanKey:
		n := &s.keyLen[s.depth-1]
		*n += copy(s.keys[s.depth-1][*n:], b)
	case s.which >= 0:
		s.hold(b)
	default:
		s.text += int64(len(b))
	}
}

func (s *jsonScanner) hold(b []byte) {
	if len(s.value)+len(b) > maxValue {
		s.which, s.value = -1, s.value[:0]
		return
	}
	s.value = append(s.value, b...)
}

// keyed says whether members of the depth matter: those at the top, and those in one in which something is wanted.
func (s *jsonScanner) keyed() bool { return s.depth == 1 || s.depth == 2 && s.inside }

// between takes one byte outside strings that means something.
func (s *jsonScanner) between(b []byte, to *Answer) {
	switch b[0] {
	case '"':
		s.state = scanString
		if s.which < 0 && s.keyed() && !s.hasKey[s.depth-1] {
			s.state, s.hasKey[s.depth-1], s.keyLen[s.depth-1] = scanKey, true, 0
			return
		}
	case '{', '[':
		s.depth++
	case '}', ']':
		if s.keyed() {
			s.endMember(to)
		}
		s.depth = max(s.depth-1, 0)
	case ',':
		if s.keyed() {
			s.endMember(to)
			return
		}
	case ':':
		if s.which < 0 && s.keyed() {
			s.begin()
			return
		}
	}
	if s.which >= 0 {
		s.hold(b)
	}
}

// key is what was read of the key at a depth.
func (s *jsonScanner) key(depth int) string { return text(s.keys[depth][:s.keyLen[depth]]) }

// begin finds out what is wanted of the member whose key was read.
func (s *jsonScanner) begin() {
	for i := range s.wanted {
		w := &s.wanted[i]
		if w.key != s.key(0) {
			continue
		}
		switch {
		case w.inner == "":
			s.which = i
		case s.depth == 1:
			s.inside, s.hasKey[1] = true, false
		case w.inner == s.key(1):
			s.which = i
		}
	}
}

// endMember takes the end of a member, which may be that of the object that it is in.
func (s *jsonScanner) endMember(to *Answer) {
	if s.which >= 0 {
		s.wanted[s.which].take(to, parse(s.value))
	}
	s.which, s.hasKey[s.depth-1], s.value = -1, false, s.value[:0]
	if s.depth == 1 {
		s.inside = false
	}
}
