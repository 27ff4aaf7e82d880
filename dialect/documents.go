// SPDX-License-Identifier: Apache-2.0

package dialect

import "bytes"

// A documentReader cuts a stream of JSON objects into its objects: one on each line, or the items of one array that is sent
// piece by piece. What stands between them does not matter.
type documentReader struct {
	depth    int
	inString bool
	escape   bool
}

// feed takes a chunk.
func (r *documentReader) feed(chunk []byte, to *Answer) {
	for len(chunk) > 0 {
		if r.depth == 0 {
			i := bytes.IndexByte(chunk, '{')
			if i < 0 {
				return
			}
			chunk = chunk[i:]
		}
		n := r.scan(chunk)
		to.part(chunk[:n])
		if r.depth == 0 {
			to.endEvent()
		}
		chunk = chunk[n:]
	}
}

// scan goes on to the end of the object, or of the chunk, and says how far.
func (r *documentReader) scan(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case r.escape:
			r.escape = false
		case r.inString:
			r.escape = c == '\\'
			r.inString = c != '"'
		case c == '"':
			r.inString = true
		case c == '{' || c == '[':
			r.depth++
		case c == '}' || c == ']':
			if r.depth--; r.depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}

// end takes the end of the stream. An object that is not complete does not count, but what was found in a long one does.
func (r *documentReader) end(to *Answer) {
	if r.depth > 0 {
		r.depth = 0
		to.lastEvent()
	}
}
