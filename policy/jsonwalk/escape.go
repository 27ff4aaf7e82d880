// SPDX-License-Identifier: Apache-2.0

package jsonwalk

import (
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Unescape resolves the escapes of what stands between the quotes of a string. It copies nothing if there are none.
func Unescape(s string) string {
	k := IndexByte(s, '\\')
	if k < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for ; k >= 0; k = IndexByte(s, '\\') {
		r, n := Escape(s[k:])
		b = utf8.AppendRune(append(b, s[:k]...), r)
		s = s[k+n:]
	}
	b = append(b, s...)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Escape reads the escape that s begins with, and says how long it is. It reads as encoding/json does: a surrogate without its
// partner is U+FFFD. A backslash that begins no escape stands for itself.
func Escape(s string) (r rune, length int) {
	if len(s) < 2 {
		return '\\', 1
	}
	switch s[1] {
	case '"', '\\', '/':
		return rune(s[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	return escapeHex(s)
}

// escapeHex reads \uXXXX, or two of them that are a pair of surrogates.
func escapeHex(s string) (rune, int) {
	r := hex4(s)
	if r < 0 {
		return '\\', 1
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if pair := utf16.DecodeRune(r, hex4(s[6:])); pair != utf8.RuneError {
		return pair, 12
	}
	return utf8.RuneError, 6
}

// hex4 gives the number in \uXXXX at the start of s, or -1.
func hex4(s string) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	r := rune(0)
	for _, b := range []byte(s[2:6]) {
		switch {
		case b >= '0' && b <= '9':
			b -= '0'
		case b >= 'a' && b <= 'f':
			b -= 'a' - 10
		case b >= 'A' && b <= 'F':
			b -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(b)
	}
	return r
}
