// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"encoding/json"
	"strconv"
	"strings"
)

// text builds JSON by hand: templates and encoders would be most of the time
// that an answer takes.
type text []byte

// s adds as is, n a number, q a quoted string.
func (b text) s(v string) text { return append(b, v...) }
func (b text) n(v int64) text  { return strconv.AppendInt(b, v, 10) }

func (b text) q(v string) text {
	for i := range len(v) {
		if c := v[i]; !plain[c] || c >= 0x7f {
			return b.escaped(v)
		}
	}
	b = append(b, '"')
	b = append(b, v...)
	return append(b, '"')
}

func (b text) escaped(v string) text {
	quoted, err := json.Marshal(v)
	if err != nil { // a string always marshals
		return append(b, `""`...)
	}
	return append(b, quoted...)
}

// maxWords bounds the text of one answer.
const maxWords = 4096

// filler holds one word, which is one token in the usual vocabularies, for each
// output token.
var filler = strings.Repeat(" word", maxWords)

// words are the words from (counted from 0) to to, with the spaces that a
// stream's pieces have.
func words(from, to int64) string {
	const size = int64(len(" word"))
	if from >= to {
		return ""
	}
	if from == 0 {
		return filler[1 : to*size]
	}
	return filler[from*size : to*size]
}
