// SPDX-License-Identifier: Apache-2.0

package dialect

import "bytes"

// An sseReader cuts a stream of server-sent events into the data of each event, however the stream is cut into chunks
// (WHATWG HTML, 9.2.6): lines end with LF, CRLF or CR, data lines of one event are joined by LF, all else is ignored. An
// event whose data is longer than maxEvent is dropped.
type sseReader struct {
	line   []byte // of the line that is not complete yet
	data   []byte // of the event that is not complete yet
	lines  int    // data lines in data
	skipLF bool   // the last byte was a CR
	began  bool   // the first line is over
	over   bool   // the event is too long
}

const maxEvent = 1 << 20

// feed takes a chunk and calls event with the data of each event that it completes; the data is valid during the call.
func (r *sseReader) feed(chunk []byte, event func(data []byte)) {
	for len(chunk) > 0 {
		if r.skipLF && chunk[0] == '\n' {
			r.skipLF = false
			chunk = chunk[1:]
			continue
		}
		r.skipLF = false
		i := bytes.IndexAny(chunk, "\r\n")
		if i < 0 {
			r.keep(chunk)
			return
		}
		line := chunk[:i]
		if len(r.line) > 0 {
			r.keep(line)
			line = r.line
		}
		r.endLine(line, event)
		r.line = r.line[:0]
		r.skipLF = chunk[i] == '\r'
		chunk = chunk[i+1:]
	}
}

// end takes the end of the stream: an event without its blank line counts, too.
func (r *sseReader) end(event func(data []byte)) {
	if len(r.line) > 0 {
		r.endLine(r.line, event)
		r.line = r.line[:0]
	}
	r.endLine(nil, event)
}

func (r *sseReader) keep(part []byte) {
	if len(r.line)+len(part) > maxEvent {
		r.over = true
		return
	}
	r.line = append(r.line, part...)
}

func (r *sseReader) endLine(line []byte, event func(data []byte)) {
	if len(line) == 0 {
		if r.lines > 0 && !r.over {
			event(r.data)
		}
		r.data, r.lines, r.over = r.data[:0], 0, false
		return
	}
	if !r.began {
		line, r.began = bytes.TrimPrefix(line, []byte(byteOrderMark)), true
	}
	value, ok := bytes.CutPrefix(line, []byte("data"))
	if !ok || len(value) > 0 && value[0] != ':' {
		return
	}
	value = bytes.TrimPrefix(bytes.TrimPrefix(value, []byte(":")), []byte(" "))
	if len(r.data)+len(value)+1 > maxEvent {
		r.over = true
		return
	}
	if r.lines > 0 {
		r.data = append(r.data, '\n')
	}
	r.data = append(r.data, value...)
	r.lines++
}
