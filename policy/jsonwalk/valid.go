// SPDX-License-Identifier: Apache-2.0

package jsonwalk

import "strings"

// maxDepth is how deep valid JSON may be nested.
const maxDepth = 1000

// Invalid says where s stops being one JSON value with nothing but white space around it, for those who must be strict; -1 if all
// of it is one.
func Invalid(s string) int {
	i, ok := validate(s, SkipSpace(s, 0), 0)
	if i = SkipSpace(s, i); ok && i == len(s) {
		return -1
	}
	return i
}

// validate goes to the end of the value at i, or to where it is none.
func validate(s string, i, depth int) (end int, ok bool) {
	if i >= len(s) || depth > maxDepth {
		return i, false
	}
	switch s[i] {
	case '"':
		return validString(s, i+1)
	case '{', '[':
		return validNested(s, i, depth)
	case 't':
		return literal(s, i, "true")
	case 'f':
		return literal(s, i, "false")
	case 'n':
		return literal(s, i, "null")
	}
	return validNumber(s, i)
}

func literal(s string, i int, word string) (int, bool) {
	return i + len(word), strings.HasPrefix(s[i:], word)
}

// validNested reads an object or an array.
func validNested(s string, i, depth int) (end int, ok bool) {
	object, closing := s[i] == '{', s[i]+2
	if i = SkipSpace(s, i+1); i < len(s) && s[i] == closing {
		return i + 1, true
	}
	for ok = true; ok; i = SkipSpace(s, i+1) {
		if object {
			if i, ok = validKey(s, i); !ok {
				break
			}
		}
		if i, ok = validate(s, i, depth+1); !ok {
			break
		}
		if i = SkipSpace(s, i); i < len(s) && s[i] == closing {
			return i + 1, true
		}
		ok = i < len(s) && s[i] == ','
	}
	return i, false
}

// validKey reads a key and its colon, up to the value.
func validKey(s string, i int) (end int, ok bool) {
	if i >= len(s) || s[i] != '"' {
		return i, false
	}
	if i, ok = validString(s, i+1); !ok {
		return i, false
	}
	i = SkipSpace(s, i)
	return SkipSpace(s, i+1), i < len(s) && s[i] == ':'
}

// validString reads the rest of a string, past its quote.
func validString(s string, i int) (end int, ok bool) {
	for i < len(s) && s[i] >= ' ' {
		switch s[i] {
		case '"':
			return i + 1, true
		case '\\':
			_, n := Escape(s[i:])
			if n == 1 {
				return i, false
			}
			i += n
		default:
			i++
		}
	}
	return i, false
}

// validNumber reads -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
func validNumber(s string, i int) (end int, ok bool) {
	if i < len(s) && s[i] == '-' {
		i++
	}
	whole := digits(s, i)
	if whole == i || s[i] == '0' && whole > i+1 {
		return i, false
	}
	i = whole
	if i < len(s) && s[i] == '.' {
		fraction := digits(s, i+1)
		if fraction == i+1 {
			return i, false
		}
		i = fraction
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		exponent := digits(s, i)
		return exponent, exponent > i
	}
	return i, true
}

func digits(s string, i int) int {
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}
