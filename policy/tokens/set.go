// SPDX-License-Identifier: Apache-2.0

package tokens

import "unsafe"

// Set counts for all families. It makes one Counter for each encoding (68 KB), when it is first needed. The zero value is
// ready for use. Not safe for concurrent use.
type Set struct {
	counters [numEncodings]*Counter
}

// Count gives the number of tokens of text for f. See Counter.Count.
func (s *Set) Count(f Family, text string) int64 {
	return int64(s.counter(f).countFor(f, text))
}

// CountBytes is Count for bytes, without a copy.
func (s *Set) CountBytes(f Family, text []byte) int64 {
	return s.Count(f, unsafe.String(unsafe.SliceData(text), len(text)))
}

// CountJSON is Count for the text of a JSON string, whose raw contents stand between the quotes. See Counter.CountJSON.
func (s *Set) CountJSON(f Family, raw string) int64 {
	return int64(s.counter(f).countJSON(f, raw))
}

// counter gives the counter of f's encoding, which counts for all families that have it.
func (s *Set) counter(f Family) *Counter {
	e := f.encoding()
	if s.counters[e] == nil {
		s.counters[e] = New(exactFamilies[e])
	}
	return s.counters[e]
}
