// SPDX-License-Identifier: Apache-2.0

package filter

// Held is what a worker has in its memory for streams that are not over: calls in flight, those that wait and their places, and
// those that Envoy may send again.
func (v *VM) Held() (inFlight, waiting, places, tickets int) {
	for _, p := range v.plugins {
		waiting += int(p.budget.entries)
	}
	return int(v.InFlight()), waiting + len(v.waiters), int(v.room.held.entries + v.room.held.bytes), len(v.tickets.streams) - len(v.tickets.free)
}

// Outlines is how many streams that are over still have what they kept of their body.
func (v *VM) Outlines() (n int) {
	for _, s := range v.free {
		if s.outline != nil {
			n++
		}
	}
	return n
}
