// SPDX-License-Identifier: Apache-2.0

package inflate

import "bytes"

// A Stream holds an answer that came compressed although it was asked for plain, to be read at its end: usage is the last
// that comes. One that is longer than maxHeld is not read.
type Stream struct {
	encoding string
	held     []byte
	over     bool
}

// Bounds of what an answer may take.
const (
	maxHeld     = 512 << 10
	maxInflated = 16 << 20
)

// NewStream begins an answer.
func NewStream(encoding string) *Stream { return &Stream{encoding: encoding} }

// Add takes the next chunk.
func (s *Stream) Add(chunk []byte) {
	if s.over = s.over || len(s.held)+len(chunk) > maxHeld; s.over {
		s.held = nil
		return
	}
	s.held = append(s.held, chunk...)
}

// End gives what came in plain, as far as it can be read, piece by piece.
func (s *Stream) End(feed func(chunk []byte)) {
	if s.over {
		return
	}
	r, err := reader(s.encoding, bytes.NewReader(s.held), answerBlocks)
	var scratch [16 << 10]byte
	for total := 0; err == nil && total < maxInflated; {
		var n int
		n, err = r.Read(scratch[:])
		feed(scratch[:n])
		total += n
	}
	s.held = nil
}
