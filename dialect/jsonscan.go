// SPDX-License-Identifier: Apache-2.0

package dialect

import "bytes"

// A jsonScanner finds the values of a few top-level members in a JSON document that comes in chunks, without holding it:
// only the values are kept, each up to maxValue bytes. It also adds up the bytes in strings, for a guess where no usage is.
type jsonScanner struct {
	wanted []string
	value  []byte // of the member that is being kept
	key    []byte // of the top-level member
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

func newJSONScanner(wanted ...string) *jsonScanner { return &jsonScanner{wanted: wanted, which: -1} }

// feed takes a chunk and calls found with each wanted value that it completes; the value is valid during the call.
func (s *jsonScanner) feed(chunk []byte, found func(which int, value []byte)) {
	for len(chunk) > 0 {
		if s.state != scanValue {
			chunk = s.inString(chunk)
			continue
		}
		s.between(chunk[0], found)
		chunk = chunk[1:]
	}
}

// inString takes bytes of a string up to its end, and gives the rest.
func (s *jsonScanner) inString(chunk []byte) []byte {
	if s.escape {
		s.escape = false
		s.put(chunk[:1])
		return chunk[1:]
	}
	i := bytes.IndexAny(chunk, `"\`)
	if i < 0 {
		s.put(chunk)
		return nil
	}
	s.escape = chunk[i] == '\\'
	if s.state == scanKey && !s.escape {
		s.put(chunk[:i])
	} else {
		s.put(chunk[:i+1])
	}
	if !s.escape {
		s.state = scanValue
	}
	return chunk[i+1:]
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

// between takes a byte outside strings.
func (s *jsonScanner) between(b byte, found func(int, []byte)) {
	switch b {
	case '"':
		s.state = scanString
		if s.depth == 1 && s.key == nil {
			s.state, s.key = scanKey, []byte{}
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
		s.hold([]byte{b})
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
	s.which, s.key, s.value = -1, nil, s.value[:0]
}
