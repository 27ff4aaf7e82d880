// SPDX-License-Identifier: Apache-2.0

package dialect

import "bytes"

// A jsonScanner finds the values of a few top-level members in a JSON document that comes in chunks, without holding it:
// only the values are kept, each up to maxValue bytes. It also adds up the bytes in strings, for a guess where no usage is.
type jsonScanner struct {
	wanted []string
	value  []byte // of the member that is being kept
	key    []byte // of the top-level member
	hasKey bool
	depth  int
	state  scanState
	which  int // index into wanted of the member being kept, -1 for none
	text   int64
	escape bool
}

type scanState uint8

const (
	scanValue  scanState = iota // between tokens
	scanString                  // in a string that is a value, or the key of a nested object
	scanKey                     // in a key of the top level
)

const (
	maxValue = 16 << 10
	maxKey   = 64
)

func newJSONScanner(wanted []string) *jsonScanner { return &jsonScanner{wanted: wanted, which: -1} }

// feed takes a chunk and calls found with each wanted value that it completes; the value is valid during the call.
func (s *jsonScanner) feed(chunk []byte, found func(which int, value []byte)) {
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
			s.between(chunk[i:i+1], found)
			i++
		}
	}
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
	i := bytes.IndexByte(chunk, '"')
	if i < 0 {
		i = len(chunk)
	}
	if k := bytes.IndexByte(chunk[:i], '\\'); k >= 0 {
		s.escape = true
		s.put(chunk[:k+1])
		return k + 1
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
		s.key = append(s.key, b[:min(len(b), maxKey-min(len(s.key), maxKey))]...)
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

// between takes one byte outside strings that means something.
func (s *jsonScanner) between(b []byte, found func(int, []byte)) {
	switch b[0] {
	case '"':
		s.state = scanString
		if s.depth == 1 && !s.hasKey {
			s.state, s.hasKey, s.key = scanKey, true, s.key[:0]
			return
		}
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth = max(s.depth-1, 0)
		if s.depth == 0 {
			s.endMember(found)
		}
	case ',':
		if s.depth == 1 {
			s.endMember(found)
			return
		}
	case ':':
		if s.depth == 1 && s.which < 0 {
			s.which = s.indexOf()
			return
		}
	}
	if s.which >= 0 {
		s.hold(b)
	}
}

func (s *jsonScanner) indexOf() int {
	for i, w := range s.wanted {
		if w == string(s.key) {
			return i
		}
	}
	return -1
}

func (s *jsonScanner) endMember(found func(int, []byte)) {
	if s.which >= 0 {
		found(s.which, s.value)
	}
	s.which, s.hasKey, s.value = -1, false, s.value[:0]
}
