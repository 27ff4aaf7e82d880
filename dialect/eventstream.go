// SPDX-License-Identifier: Apache-2.0

package dialect

import "encoding/binary"

// A frameReader cuts AWS's application/vnd.amazon.eventstream into the payloads of its frames. A frame is its length and
// that of its headers, a checksum of these, the headers, the payload, and a checksum of it all. Checksums are not looked at: the caller's
// library does that, and what is wrong here costs no more than a count. After lengths that cannot be, nothing more is read.
type frameReader struct {
	prelude [12]byte
	have    int    // of the prelude
	headers []byte // of this frame
	header  int    // how long they are
	payload int    // bytes of it to come
	rest    int    // bytes of the checksum to come
	broken  bool
}

// AWS's own bounds.
const (
	maxFrame   = 24 << 20
	maxHeaders = 128 << 10
	checksum   = 4
)

// feed takes a chunk.
func (r *frameReader) feed(chunk []byte, to *Answer) {
	for len(chunk) > 0 && !r.broken {
		n := 0
		switch {
		case r.have < len(r.prelude):
			n = copy(r.prelude[r.have:], chunk)
			if r.have += n; r.have == len(r.prelude) {
				r.begin()
			}
		case len(r.headers) < r.header:
			n = min(len(chunk), r.header-len(r.headers))
			r.headers = append(r.headers, chunk[:n]...)
		case r.payload > 0:
			n = min(len(chunk), r.payload)
			to.part(chunk[:n])
			r.payload -= n
		default:
			n = min(len(chunk), r.rest)
			if r.rest -= n; r.rest == 0 {
				r.finish(to)
			}
		}
		chunk = chunk[n:]
	}
}

// begin takes a frame's lengths.
func (r *frameReader) begin() {
	total, header := binary.BigEndian.Uint32(r.prelude[:]), binary.BigEndian.Uint32(r.prelude[4:])
	overhead := uint32(len(r.prelude)) + checksum
	if total > maxFrame || header > maxHeaders || total < overhead+header {
		r.broken = true
		return
	}
	r.headers, r.header = r.headers[:0], int(header)
	r.payload, r.rest = int(total-overhead-header), checksum
}

// finish takes the end of a frame.
func (r *frameReader) finish(to *Answer) {
	r.have = 0
	if kind := frameHeader(r.headers, ":message-type"); kind == "exception" || kind == "error" {
		to.failedFrame(frameHeader(r.headers, ":exception-type"))
		return
	}
	to.endEvent()
}

// failedFrame takes a frame that says that something went wrong; the headers say what.
func (a *Answer) failedFrame(kind string) {
	a.refuse(`{"type":"` + kind + `"}`)
	a.event = eventBuffer{}
	a.failed = a.failed || a.output == 0
}

// end takes the end of the stream. A frame that is not complete does not count.
func (r *frameReader) end(to *Answer) {
	to.event = eventBuffer{}
	r.broken = true
}

// frameSizes are how long the values of the types of headers are: yes, no, byte, short, int, long, bytes, string, time, UUID.
// Those below 0 begin with their length.
var frameSizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// frameHeader finds a header of type string; "" if there is none.
func frameHeader(b []byte, name string) string {
	for len(b) > 1 {
		n := int(b[0])
		if len(b) < n+2 || int(b[n+1]) >= len(frameSizes) {
			return ""
		}
		this, size := string(b[1:n+1]), frameSizes[b[n+1]]
		b = b[n+2:]
		if size < 0 {
			if len(b) < 2 {
				return ""
			}
			size = int(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		if len(b) < size {
			return ""
		}
		if this == name {
			return string(b[:size])
		}
		b = b[size:]
	}
	return ""
}
