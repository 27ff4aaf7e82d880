// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"unicode/utf8"
	"unsafe"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// CountJSON is Count for the text of a JSON string; raw is what stands between the quotes. It reads as encoding/json does:
// a surrogate without its partner is U+FFFD. What is no JSON counts as it stands, a backslash too that begins no escape.
func (c *Counter) CountJSON(raw string) int { return c.countJSON(c.family, raw) }

func (c *Counter) countJSON(f Family, raw string) int {
	if jsonwalk.IndexByte(raw, '\\') < 0 {
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
		if raw[0] == '\\' {
			if len(raw) > 1 && shortEscapes[raw[1]] != 0 { // most are: a call for each would be felt
				b, raw = append(b, shortEscapes[raw[1]]), raw[2:]
				continue
			}
			r, n := jsonwalk.Escape(raw)
			b, raw = utf8.AppendRune(b, r), raw[n:]
			continue
		}
		k := jsonwalk.IndexByte(raw[:min(len(raw), most-len(b))], '\\')
		if k < 0 {
			k = min(len(raw), most-len(b))
		}
		b, raw = append(b, raw[:k]...), raw[k:]
	}
	return b, raw
}

// shortEscapes are the escapes of one character.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
