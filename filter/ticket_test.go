// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"testing"

	"pgregory.net/rapid"
)

// A stream is found by its ticket as long as it has it, by no other, and none comes twice.
func TestTickets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		desk := tickets{last: rapid.SampledFrom([]uint64{0, 5, 1<<64 - 1, 1<<64 - 1<<placeBits}).Draw(t, "last")}
		held, seen := map[uint64]*Stream{}, map[uint64]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "drop") {
				for ticket, s := range held {
					desk.drop(ticket)
					s.attempts.ticket = 0
					delete(held, ticket)
					break
				}
			} else {
				s := &Stream{}
				s.attempts.ticket = desk.issue(s)
				if ticket := s.attempts.ticket; ticket == 0 || seen[ticket] {
					t.Fatalf("ticket %#x again", ticket)
				}
				held[s.attempts.ticket], seen[s.attempts.ticket] = s, true
			}
			for ticket := range seen {
				if desk.find(ticket) != held[ticket] {
					t.Fatalf("%#x is another's", ticket)
				}
			}
			if places := len(desk.streams) - len(desk.free); places != len(held) || desk.find(1<<placeBits-1) != nil {
				t.Fatalf("%d places for %d streams", places, len(held))
			}
		}
	})
}
