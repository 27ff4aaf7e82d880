// SPDX-License-Identifier: Apache-2.0

package filter

// tickets are numbers by which attempts find their streams: in the low bits the place where the stream is, and above them a count from a
// random number on, so that none comes twice, nor is one of a VM that was here before.
type tickets struct {
	streams []*Stream
	free    []uint64 // places
	last    uint64
}

// placeBits are enough for the streams of one worker: the memory of a VM holds fewer.
const placeBits = 24

// issue gives a stream a ticket; 0: there are too many streams.
func (t *tickets) issue(s *Stream) uint64 {
	place := uint64(len(t.streams))
	switch n := len(t.free); {
	case n > 0:
		place, t.free = t.free[n-1], t.free[:n-1]
		t.streams[place] = s
	case place >= 1<<placeBits:
		return 0
	default:
		t.streams = append(t.streams, s)
	}
	if t.last += 1 << placeBits; t.last>>placeBits == 0 {
		t.last += 1 << placeBits
	}
	return t.last&^(1<<placeBits-1) | place
}

// find gives the stream of a ticket, as long as it has it; otherwise nil.
func (t *tickets) find(ticket uint64) *Stream {
	place := ticket & (1<<placeBits - 1)
	if place >= uint64(len(t.streams)) {
		return nil
	}
	if s := t.streams[place]; s != nil && s.attempts.ticket == ticket {
		return s
	}
	return nil
}

// drop takes back a ticket that was issued.
func (t *tickets) drop(ticket uint64) {
	place := ticket & (1<<placeBits - 1)
	t.streams[place] = nil
	t.free = append(t.free, place)
}
