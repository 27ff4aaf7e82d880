// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"encoding/json"
	"errors"
)

var (
	errSyntax = errors.New("body is not valid JSON")
	errDeep   = errors.New("body is nested too deeply")
	errEnd    = errors.New("body ends too early")
)

// maxDepth bounds the recursion; a provider would not go so deep either.
const maxDepth = 1000

// scanner walks over JSON text once, without building values: the mock is the
// back end of benchmarks, and a decoder would cost more than all the rest.
// It accepts what encoding/json accepts, except for depth.
type scanner struct {
	b     []byte
	i     int
	depth int
}

// plain marks the bytes that stand for themselves inside a string.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 256; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// next is the next byte that is not white space, 0 at the end.
func (s *scanner) next() byte {
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) fail() error {
	if s.i >= len(s.b) {
		return errEnd
	}
	return errSyntax
}

// expect consumes one byte.
func (s *scanner) expect(c byte) error {
	if s.next() != c {
		return s.fail()
	}
	s.i++
	return nil
}

// str consumes a string: its raw text without quotes, and the length it has
// once decoded.
func (s *scanner) str() (raw []byte, length int64, err error) {
	if err := s.expect('"'); err != nil {
		return nil, 0, err
	}
	start := s.i
	shorter := int64(0) // bytes that escapes take beyond what they stand for
	for s.i < len(s.b) {
		c := s.b[s.i]
		switch {
		case plain[c]:
			s.i++
		case c == '"':
			raw = s.b[start:s.i]
			s.i++
			return raw, int64(len(raw)) - shorter, nil
		case c == '\\':
			n, err := s.escape()
			if err != nil {
				return nil, 0, err
			}
			shorter += n
		default:
			return nil, 0, errSyntax
		}
	}
	return nil, 0, errEnd
}

// escape consumes one escape and returns by how much it is longer than its meaning.
func (s *scanner) escape() (int64, error) {
	if s.i+1 >= len(s.b) {
		s.i = len(s.b)
		return 0, errEnd
	}
	switch s.b[s.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return 1, nil
	case 'u':
		return s.unicode()
	}
	return 0, errSyntax
}

func (s *scanner) unicode() (int64, error) {
	v := 0
	for j := s.i + 2; j < s.i+6; j++ {
		if j >= len(s.b) {
			s.i = j
			return 0, errEnd
		}
		d := hexValue(s.b[j])
		if d < 0 {
			return 0, errSyntax
		}
		v = v<<4 | d
	}
	s.i += 6
	switch {
	case v < 0x80:
		return 5, nil
	case v < 0x800 || v >= 0xd800 && v < 0xe000: // half of a pair that makes four bytes
		return 4, nil
	}
	return 3, nil
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// decoded is the meaning of a raw string.
func decoded(raw []byte) string {
	for _, c := range raw {
		if c == '\\' || c >= 0x80 { // the latter may be no valid UTF-8
			var v string
			// The scanner has checked it; an error leaves it empty.
			_ = json.Unmarshal(append(append([]byte{'"'}, raw...), '"'), &v)
			return v
		}
	}
	return string(raw)
}
