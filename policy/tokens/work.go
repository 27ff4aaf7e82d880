// SPDX-License-Identifier: Apache-2.0

package tokens

// work is what was merged of a text. Merging takes ten times as long as looking pieces up, and a text can be made of
// nothing else: what is merged beyond workMost bytes of one text counts by its length. An ordinary text of a megabyte
// stays far below, most of it being whole tokens, or pieces that were seen before.
type work struct {
	bytes, tokens int // merged in this text
	all           int64
}

// workMost bytes take 0.1 s at the most, as WebAssembly on a slow machine.
const workMost = 512 << 10

// leastRate is one token in so many bytes, the least that is charged for what is not merged: else a text that begins with
// a megabyte of blanks would make all that follows as cheap.
const leastRate = 4

func (w *work) begin() { w.bytes, w.tokens = 0, 0 }

// done notes that so many bytes were merged.
func (w *work) done(bytes, tokens int) {
	w.bytes += bytes
	w.tokens += tokens
	w.all += int64(bytes)
}

// byLength is what so many bytes count as that are not merged: as many tokens a byte as those before them, or more.
func (w *work) byLength(bytes int) int {
	return max(int(int64(bytes)*int64(w.tokens)/int64(w.bytes)), bytes/leastRate, 1)
}

// Work is how many bytes of text were merged in all: a caller that counts many texts for one request can bound it.
func (s *Set) Work() (bytes int64) {
	for _, c := range s.counters {
		if c != nil {
			bytes += c.all
		}
	}
	return bytes
}
