// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// CountJSON is Count for the text of a JSON string; raw is what stands between the quotes. It reads as encoding/json does:
// a surrogate without its partner is U+FFFD. What is no JSON counts as it stands, a backslash too that begins no escape.
func (c *Counter) CountJSON(raw string) int { return c.countJSON(c.family, raw) }

func (c *Counter) countJSON(f Family, raw string) int {
	if strings.IndexByte(raw, '\\') < 0 {
		return c.countFor(f, raw)
	}
	p := parts{family: f}
	c.begin()
	b, most := c.decoded[:0], partSize
	for raw != "" {
		b, raw = decode(b, raw, most)
		if raw == "" {
			break
		}
		cut := lastCut(b)
		if cut == 0 { // no blank in all of it
			most *= 2
			continue
		}
		c.feed(&p, unsafe.String(unsafe.SliceData(b), cut))
		b, most = b[:copy(b, b[cut:])], partSize
	}
	c.feed(&p, unsafe.String(unsafe.SliceData(b), len(b)))
	c.decoded = trim(b)
	return p.total()
}

// decode resolves the escapes of raw, until b has about so many bytes, and gives what is left of raw.
func decode(b []byte, raw string, most int) ([]byte, string) {
	for len(b) < most && raw != "" {
		k := strings.IndexByte(raw[:min(len(raw), most-len(b))], '\\')
		if k < 0 {
			k = min(len(raw), most-len(b))
			b, raw = append(b, raw[:k]...), raw[k:]
			continue
		}
		b = append(b, raw[:k]...)
		r, n := escape(raw[k:])
		b = utf8.AppendRune(b, r)
		raw = raw[k+n:]
	}
	return b, raw
}

// escape reads the escape that s begins with, and says how long it is.
func escape(s string) (rune, int) {
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
