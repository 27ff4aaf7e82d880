// SPDX-License-Identifier: Apache-2.0

package tokens

import "unicode/utf8"

// cutDeepSeek returns the end of the piece at i, as the patterns of DeepSeek V3 cut it. The first two cut the text into their
// matches and what lies between; the third cuts each of these as if it were a text of its own, and what none of its
// alternatives matches is a piece, too.
//
//	\p{N}{1,3}
//	[一-龥぀-ゟ゠-ヿ]+
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+
//	[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
//	 ?[\p{P}\p{S}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func cutDeepSeek(s string, i int) int {
	c, n := deepClass(s, i)
	next := i + n
	d, m := deepEnd, 0
	if next < len(s) {
		d, m = deepClass(s, next)
	}
	switch {
	case c == deepNumber:
		return digits(s, next)
	case c == deepHan, c == deepHanSign:
		return deepSpan(s, next, c)
	case c == deepHanOther && d == deepHan:
		return deepSpan(s, next, deepHan)
	case c == deepHanOther:
		return deepRest(s, next, c, deepHan)
	case c == deepSign && s[i] < 0x80 && d == deepLetter && s[next] < 0x80:
		for next < len(s) && within(uint64(s[next]|0x20), 'a', 'z')&0x80 != 0 {
			next++
		}
		return next
	case c == deepLetter:
		return deepSpan(s, next, deepLetter)
	case d == deepLetter && c != deepSign && c != deepLine:
		return deepSpan(s, next+m, deepLetter)
	case c == deepSign:
		return lineEnds(s, deepSpan(s, next, deepSign))
	case s[i] == ' ' && d == deepSign:
		return lineEnds(s, deepSpan(s, next+m, deepSign))
	case c == deepSpace, c == deepLine:
		return deepBlanks(s, i)
	}
	return deepRest(s, next, c, deepLetter)
}

// deep is what the patterns of DeepSeek ask of a character.
type deep uint8

const (
	deepEnd deep = iota // of the text
	deepNumber
	deepLetter // L, M
	deepSign   // P, S
	deepOther  // controls and the like
	deepHan    // these three for what the second pattern cuts out, Chinese and Japanese
	deepHanSign
	deepHanOther
	deepSpace
	deepLine // CR, LF
)

func deepClass(s string, i int) (deep, int) {
	c, n := class(s, i)
	switch {
	case c&classNumber != 0:
		return deepNumber, n
	case c&classLineEnd != 0:
		return deepLine, n
	case c&classSpace != 0:
		return deepSpace, n
	}
	r, of := rune(s[i]), deepLetter
	if n > 1 {
		if r, _ = utf8.DecodeRuneInString(s[i:]); r >= 0x3040 && r <= 0x30FF || r >= 0x4E00 && r <= 0x9FA5 {
			of = deepHan
		}
	}
	switch {
	case c&(classLetter|classMark) != 0:
		return of, n
	case deepSigns.has(r):
		return of + (deepSign - deepLetter), n
	}
	return of + (deepOther - deepLetter), n
}

// deepSpan returns the end of the run at i.
func deepSpan(s string, i int, of deep) int {
	for i < len(s) {
		c, n := deepClass(s, i)
		if c != of {
			break
		}
		i += n
	}
	return i
}

func lineEnds(s string, i int) int {
	for i < len(s) && (s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// deepBlanks takes white space; before what the first patterns cut out it is at the end of its text.
func deepBlanks(s string, i int) int {
	end := span(s, i, classSpace)
	if end < len(s) {
		if c, _ := deepClass(s, end); c == deepNumber || c >= deepHan && c <= deepHanOther {
			return blanks(s[:end], i, false)
		}
	}
	return blanks(s, i, false)
}

// deepRest takes others, which no alternative matches, but that the last of them belongs to a word behind it.
func deepRest(s string, i int, others, word deep) int {
	for i < len(s) {
		c, n := deepClass(s, i)
		if c != others {
			break
		}
		if i+n < len(s) {
			if d, _ := deepClass(s, i+n); d == word {
				break
			}
		}
		i += n
	}
	return i
}
