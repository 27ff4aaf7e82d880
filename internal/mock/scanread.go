// SPDX-License-Identifier: Apache-2.0

package mock

import "strconv"

func (s *scanner) stringTo(v *string) error {
	if s.next() != '"' {
		return s.skip()
	}
	raw, _, err := s.str()
	if err == nil {
		*v = decoded(raw)
	}
	return err
}

// boolTo and countTo take another type for false or for nothing: null is common,
// and strictness about types is not this mock's business.
func (s *scanner) boolTo(v *bool) error {
	*v = s.next() == 't'
	return s.skip()
}

func (s *scanner) countTo(v *int64) error {
	c := s.next()
	if c < '0' || c > '9' {
		return s.skip()
	}
	raw, err := s.number()
	if err != nil {
		return err
	}
	f, ferr := strconv.ParseFloat(string(raw), 64)
	if ferr != nil || f > float64(maxTokens) {
		*v = maxTokens
	} else {
		*v = int64(f)
	}
	return nil
}

// optionalObject is object where null or anything else may stand instead.
func (s *scanner) optionalObject(member func(key []byte) error) error {
	if s.next() != '{' {
		return s.skip()
	}
	return s.object(member)
}
