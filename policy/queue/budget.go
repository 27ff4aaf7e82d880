// SPDX-License-Identifier: Apache-2.0

package queue

// A Budget bounds what several queues hold together: those of one worker for different providers, or those of all workers.
// The queue asks for each entry, and gives back exactly what it got.
type Budget interface {
	Take(bytes int64) bool // one entry of so many bytes
	Give(bytes int64)
}

// A Counter is a budget within one worker. Its bounds are those of the policy's queue: {entries, bytes}.
type Counter struct {
	MaxEntries, MaxBytes int64
	Entries, Bytes       int64 // held now
}

// Take takes one entry, if there is room.
func (c *Counter) Take(bytes int64) bool {
	if c.Entries >= c.MaxEntries || bytes > c.MaxBytes-c.Bytes {
		return false
	}
	c.Entries++
	c.Bytes += bytes
	return true
}

// Give gives one entry back.
func (c *Counter) Give(bytes int64) {
	c.Entries--
	c.Bytes -= bytes
}
