// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/weirproxy/weir/policy/jsonwalk"

// An sseReader cuts a stream of server-sent events into the data of each event, however the stream is cut into chunks
// (WHATWG HTML, 9.2.6): lines end with LF, CRLF or CR, data lines of one event are joined by LF, all else is ignored. It holds
// nothing.
type sseReader struct {
	state  sseState
	field  int  // bytes of the field's name that were as in "data"
	lines  int  // data lines of the event
	skipLF bool // the last byte was a CR
}

type sseState uint8

const (
	sseName  sseState = iota // in the name of a field, or before it
	sseSpace                 // behind the colon, where one space does not count
	sseData                  // in data
	sseSkip                  // in a line that does not matter
)

// feed takes a chunk.
func (r *sseReader) feed(chunk []byte, to *Answer) {
	lf, cr := -1, -1 // where the next of them is, len(chunk) if there is none: neither is ever looked for twice
	for i := 0; i < len(chunk); {
		if r.skipLF && chunk[i] == '\n' {
			r.skipLF = false
			i++
			continue
		}
		r.skipLF = false
		if lf < i {
			lf = find(chunk, i, '\n')
		}
		if cr < i {
			cr = find(chunk, i, '\r')
		}
		end := min(lf, cr)
		r.part(chunk[i:end], to)
		if end == len(chunk) {
			return
		}
		r.endLine(to)
		r.skipLF = end == cr
		i = end + 1
	}
}

// find gives the place of the next b from i on; len(chunk) if there is none.
func find(chunk []byte, i int, b byte) int {
	if n := jsonwalk.IndexByte(text(chunk[i:]), b); n >= 0 {
		return i + n
	}
	return len(chunk)
}

const dataField = "data"

// part takes a part of a line.
func (r *sseReader) part(b []byte, to *Answer) {
	for r.state == sseName && len(b) > 0 {
		switch {
		case r.field < len(dataField) && b[0] == dataField[r.field]:
			r.field++
		case r.field == len(dataField) && b[0] == ':':
			r.beginData(to)
			r.state = sseSpace
		default:
			r.state = sseSkip
		}
		b = b[1:]
	}
	if len(b) == 0 || r.state == sseSkip {
		return
	}
	if r.state == sseSpace && b[0] == ' ' {
		b = b[1:]
	}
	r.state = sseData
	to.part(b)
}

// beginData begins another data line.
func (r *sseReader) beginData(to *Answer) {
	if r.lines > 0 {
		to.part(newline)
	}
	r.lines++
}

var newline = []byte("\n")

// endLine takes the end of a line. An empty one ends the event.
func (r *sseReader) endLine(to *Answer) {
	switch {
	case r.state != sseName:
	case r.field == 0:
		if r.lines > 0 {
			to.endEvent()
			r.lines = 0
		}
	case r.field == len(dataField): // a field without a value
		r.beginData(to)
	}
	r.state, r.field = sseName, 0
}

// end takes the end of the stream: an event without its blank line counts, too.
func (r *sseReader) end(to *Answer) {
	if r.lines > 0 {
		to.lastEvent()
		r.lines = 0
	}
}
