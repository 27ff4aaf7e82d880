// SPDX-License-Identifier: Apache-2.0

package mock

import "bytes"

// object consumes an object and calls member with each key, at its value.
func (s *scanner) object(member func(key []byte) error) error {
	return s.nested('{', '}', func() error {
		raw, _, err := s.str()
		if err != nil {
			return err
		}
		if bytes.IndexByte(raw, '\\') >= 0 {
			raw = []byte(decoded(raw))
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return member(raw)
	})
}

// array consumes an array and calls element at each element.
func (s *scanner) array(element func() error) error {
	return s.nested('[', ']', element)
}

// nested consumes what stands between two brackets, separated by commas.
func (s *scanner) nested(open, end byte, item func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return errDeep
	}
	defer func() { s.depth-- }()
	if s.next() == end {
		s.i++
		return nil
	}
	for {
		if s.next() == 0 {
			return s.fail()
		}
		if err := item(); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.i++
		case end:
			s.i++
			return nil
		default:
			return s.fail()
		}
	}
}

// skip consumes any value.
func (s *scanner) skip() error {
	switch c := s.next(); {
	case c == '{':
		return s.object(func([]byte) error { return s.skip() })
	case c == '[':
		return s.array(s.skip)
	case c == '"':
		_, _, err := s.str()
		return err
	case c == '-' || c >= '0' && c <= '9':
		_, err := s.number()
		return err
	}
	return s.literal()
}

// number consumes a number by JSON's grammar and returns its text.
func (s *scanner) number() ([]byte, error) {
	s.next()
	start := s.i
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return nil, s.fail()
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return nil, s.fail()
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return nil, s.fail()
		}
	}
	return s.b[start:s.i], nil
}

func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// digits consumes digits and says whether there was one.
func (s *scanner) digits() bool {
	start := s.i
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.i++
	}
	return s.i > start
}

func (s *scanner) literal() error {
	for _, word := range []string{"true", "false", "null"} {
		rest := s.b[s.i:]
		if len(rest) >= len(word) && string(rest[:len(word)]) == word {
			s.i += len(word)
			return nil
		}
		if len(rest) < len(word) && word[:len(rest)] == string(rest) {
			return errEnd
		}
	}
	return s.fail()
}
