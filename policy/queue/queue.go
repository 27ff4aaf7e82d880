// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"math/bits"
)

// Never is a time that does not come.
const Never = math.MaxInt64

// An Entry is one request that waits.
type Entry struct {
	ID       uint64 // the caller's own, such as a stream's number
	Class    int    // index into Config.Classes; 0 is the highest
	Owner    uint64 // whose narrowest buckets it has to pass, such as the user's key; 0: nobody's
	Parent   uint64 // whose wider ones, such as the tenant's; 0: nobody's
	Bytes    int64  // held in memory for it
	Cost     int64  // what it weighs under Weighted; 0 stands for 1
	Deadline int64  // ns: from then on it is not sent any more; 0: none
	Arrived  int64  // ns, set by Push
}

// A Handle names a queued entry. It is never used again for another one of the same place until 2^32 have been there.
type Handle struct{ at, life uint32 }

// A Queue holds entries in the order of a discipline. Made by [New].
type Queue struct {
	config  Config
	leads   [MaxClasses]int64 // Linear, ns
	nodes   []node
	free    int32 // first free node; none: -1
	lists   [MaxClasses]list
	due     []int32 // heap of nodes by deadline
	n       int
	bytes   int64
	seq     uint64
	last    int64 // latest time seen
	turns   turns
	cursors [MaxClasses]int32
	blocked blocked
	busy    bool // a turn is under way
	pushed  bool // during it
	stopped bool // the last turn ended with Stop
	parted  uint // bit set of the classes for which it had SkipClass
}

// A node is a place for an entry.
type node struct {
	Entry
	seq        uint64
	life       uint32
	used       bool
	next, prev int32  // within its class; -1: none
	due        int32  // index in the heap; -1: not in it
	notBefore  int64  // ns: what it waits for itself
	held       uint64 // whose buckets that is: its owner's or its parent's
}

// A list is the entries of one class, the oldest first.
type list struct {
	head, tail int32
	n          int
	cost       int64
}

// New makes a queue. All its memory is made now or at the first use of a place, and used again.
func New(c Config) (*Queue, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	q := &Queue{config: c, free: -1, last: math.MinInt64}
	q.config.Classes = append([]Class(nil), c.Classes...)
	for i := range q.config.Classes {
		class := &q.config.Classes[i]
		class.Weight = max(class.Weight, 1)
		if c.Discipline == Linear {
			q.leads[i] = c.lead(*class)
		}
	}
	for i := range q.lists {
		q.lists[i], q.cursors[i] = list{head: -1, tail: -1}, -1
	}
	q.blocked.bits = bits.Len(uint(2*c.Entries - 1))
	return q, nil
}

// Len is how many entries wait.
func (q *Queue) Len() int { return q.n }

// Bytes is what they hold.
func (q *Queue) Bytes() int64 { return q.bytes }

// Waiting is how many entries of a class wait.
func (q *Queue) Waiting(class int) int { return q.lists[class].n }

// Stopped is the highest class that waits for what all share: of those that a Stop in the last turn kept from being offered,
// without those whose own bucket is known to refuse them. -1: nobody does. Workers tell each other, so that a lower class yields.
func (q *Queue) Stopped(now int64) int {
	for c := range q.config.Classes {
		for i := q.cursors[c]; q.stopped && i >= 0; i = q.nodes[i].next {
			if n := &q.nodes[i]; n.notBefore <= now && !q.isBehind(n) {
				return c
			}
		}
	}
	return -1
}

// Ahead is how many entries, and what they weigh, go before an arrival of a class for certain: no discipline lets it pass its
// own class, FIFO nobody, and Strict no higher one. With the rate of what is waited for it gives the expected wait for Push,
// which then never refuses who might have been in time.
func (q *Queue) Ahead(class int) (entries int, cost int64) {
	class = q.classOf(class)
	for c := range q.config.Classes {
		if c == class || q.config.Discipline == FIFO || q.config.Discipline == Strict && c < class {
			entries += q.lists[c].n
			cost += q.lists[c].cost
		}
	}
	return entries, cost
}

// Push makes an entry wait, behind all of its class. expected is how long the caller thinks that it will have to, in ns: if
// that is not before its deadline it is refused now, before anything was reserved or held for it. A class that there is not
// counts as the lowest.
func (q *Queue) Push(now int64, e Entry, expected int64) (Handle, Outcome) {
	now = q.tick(now)
	e.Class = q.classOf(e.Class)
	e.Bytes = max(e.Bytes, 0)
	e.Cost = min(max(e.Cost, 1), maxCost)
	e.Arrived = now
	if e.Deadline == 0 {
		e.Deadline = Never
	}
	if e.Deadline <= now || e.Deadline != Never && max(expected, 0) >= e.Deadline-now {
		return Handle{}, QueueTimeout
	}
	if q.n >= q.config.Entries || e.Bytes > q.config.Bytes-q.bytes {
		return Handle{}, QueueFull
	}
	if q.config.Budget != nil && !q.config.Budget.Take(e.Bytes) {
		return Handle{}, QueueFull
	}
	i := q.place()
	n := &q.nodes[i]
	*n = node{Entry: e, seq: q.seq, life: n.life, used: true, due: -1, next: -1, prev: -1}
	q.seq++
	q.pushed = true
	q.link(i)
	q.schedule(i)
	return Handle{uint32(i), n.life}, Queued
}

// Cancel takes an entry out whose caller has left. It says whether it was still there.
func (q *Queue) Cancel(h Handle) bool {
	if !q.has(h) {
		return false
	}
	q.remove(int32(h.at))
	return true
}

// Get gives a queued entry; false if it is not there any more.
func (q *Queue) Get(h Handle) (Entry, bool) {
	if !q.has(h) {
		return Entry{}, false
	}
	return q.nodes[h.at].Entry, true
}

func (q *Queue) has(h Handle) bool {
	return int(h.at) < len(q.nodes) && q.nodes[h.at].used && q.nodes[h.at].life == h.life
}

// tick keeps time from going back, so that who came later is never older.
func (q *Queue) tick(now int64) int64 {
	q.last = max(q.last, now)
	return q.last
}

func (q *Queue) classOf(class int) int {
	if class < 0 || class >= len(q.config.Classes) {
		return len(q.config.Classes) - 1
	}
	return class
}
