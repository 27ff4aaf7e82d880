// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"time"
	"unsafe"

	"github.com/weirproxy/weir/policy"
)

// What waits is bounded over all workers: each has its part of the sum in shared data. A part is raised before anything is held
// and lowered some time after it was let go, so the sum of what is held never exceeds the bound. It is a lease: that of a worker
// that died ends.

// A part is what one worker holds, as it lies in shared data beside those of the others.
type part struct {
	vm      uint64
	entries int64
	bytes   int64
	expires int64 // ns
}

const (
	partSize = int(unsafe.Sizeof(part{}))
	roomName = "Q"

	// roomLease is how long a worker's part counts after it last said so, and a fifth of it is how often it says so.
	roomLease = int64(5 * time.Second)
	roomTries = 16
)

// A room is this worker's part of what waits in all of them, of all its configurations.
type room struct {
	vm    *VM
	held  part             // what waits here
	said  part             // what shared data says of it: no less, while its lease lives
	under policy.QueueRule // the bounds that were asked when it was last raised
}

// take makes place for one entry, if the bounds allow.
func (r *room) take(bytes int64, q *policy.QueueRule) bool {
	now := r.vm.host.Now()
	want := r.held
	want.entries++
	want.bytes += bytes
	if want.entries > r.said.entries || want.bytes > r.said.bytes || now >= r.said.expires || *q != r.under {
		if !r.say(now, want, q) {
			return false
		}
		r.under = *q
	}
	r.held = want
	return true
}

func (r *room) give(bytes int64) {
	r.held.entries--
	r.held.bytes -= bytes
}

// renew says what this worker holds, if that has become less or was said long ago. It must be called in each tick.
func (r *room) renew(now int64) {
	less := r.said.entries > r.held.entries || r.said.bytes > r.held.bytes
	if less || r.held.entries > 0 && r.said.expires-now < roomLease/5*4 {
		r.say(now, r.held, nil)
	}
}

// say puts this worker's part into shared data, unless the sum would exceed the bounds, if there are any.
func (r *room) say(now int64, want part, q *policy.QueueRule) bool {
	want.vm, want.expires = r.vm.id, now+roomLease
	for range roomTries {
		var list []part
		value, cas, ok := r.vm.host.Get(roomName)
		if !ok {
			cas = policy.CreateCAS
		} else if n := len(value) / partSize; n > 0 {
			list = unsafe.Slice((*part)(unsafe.Pointer(unsafe.SliceData(value))), n)
		}
		sum, at := part{}, -1
		for i := range list {
			switch p := &list[i]; {
			case p.vm == want.vm:
				at = i
			case p.expires <= now || p.expires > now+2*roomLease:
				if at < 0 {
					at = i
				}
			default:
				sum.entries += p.entries
				sum.bytes += p.bytes
			}
		}
		if q != nil && (sum.entries+want.entries > q.Entries || want.bytes > q.Bytes-sum.bytes) {
			return false
		}
		if at < 0 {
			list, at = append(list[:len(list):len(list)], want), len(list)
		}
		list[at] = want
		if r.vm.host.Set(roomName, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*partSize), cas) {
			r.said = want
			return true
		}
	}
	return false
}

// A share is what one configuration has of the room: its lines' budget.
type places struct {
	plugin  *Plugin
	entries int64
}

// Take takes a place for one entry.
func (b *places) Take(bytes int64) bool {
	if !b.plugin.vm.room.take(bytes, &b.plugin.policy.Queue) {
		return false
	}
	b.entries++
	return true
}

// Give gives it back.
func (b *places) Give(bytes int64) {
	b.entries--
	b.plugin.vm.room.give(bytes)
}
