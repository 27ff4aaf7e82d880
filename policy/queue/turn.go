// SPDX-License-Identifier: Apache-2.0

package queue

// An Answer is what became of an offered entry.
type Answer struct {
	what  uint8
	until int64
}

const (
	sent uint8 = iota
	stopped
	skipped
	skippedParent
	skippedAlone
	parted
)

// Sent says that the entry was sent: it has left the queue.
func Sent() Answer { return Answer{what: sent} }

// Stop says that what all entries share has not enough for this one until some time, in ns: nobody else may have it before,
// however small, or the large would wait for ever.
func Stop(until int64) Answer { return Answer{stopped, until} }

// Skip says that a bucket of the entry's own owner refuses it until some time, in ns. It keeps its place, is offered again
// from then on, and holds up no other owner.
func Skip(until int64) Answer { return Answer{skipped, until} }

// SkipParent is Skip for a bucket of the owner's parent: it holds up all of its owners.
func SkipParent(until int64) Answer { return Answer{skippedParent, until} }

// SkipAlone is Skip for a bucket that is neither the owner's nor its parent's: it holds up nobody else.
func SkipAlone(until int64) Answer { return Answer{skippedAlone, until} }

// SkipClass says that the class's part of what all share has not enough for this one until some time, in ns: nobody else of
// the class may have it before, and other classes go on.
func SkipClass(until int64) Answer { return Answer{parted, until} }

// A Server is what a queue offers entries to. Both may push and cancel entries; a turn within a turn does nothing.
type Server interface {
	Try(h Handle, e Entry) Answer
	Timeout(h Handle, e Entry) // its deadline has come; it has left the queue
}

// Turn ends those whose deadline has come and offers the others in the order of the discipline, until all were, or one says
// Stop. It gives the time of the next turn in ns, or Never: earlier only if somebody arrives, or what is waited for comes
// back sooner.
func (q *Queue) Turn(now int64, s Server) int64 {
	if q.busy {
		return now
	}
	q.busy, q.pushed = true, false
	defer func() { q.busy = false }()
	now = q.tick(now)
	q.expire(now, s)
	wake := q.offer(now, s)
	if len(q.due) > 0 {
		wake = min(wake, q.nodes[q.due[0]].Deadline)
	}
	wake = min(wake, q.ages(now))
	if q.pushed { // by the server: it may not have been offered yet
		wake = now
	}
	return wake
}

// ages is when the oldest entry of a class next reaches its threshold: it then goes before who was told to wait, and may need
// less.
func (q *Queue) ages(now int64) int64 {
	next := int64(Never)
	for c := range q.config.Classes {
		i := q.lists[c].head
		if limit := int64(q.config.Classes[c].Threshold); q.config.Discipline == Threshold && i >= 0 && limit > 0 && !q.aged(now, &q.nodes[i]) {
			next = min(next, q.nodes[i].Arrived+limit)
		}
	}
	return next
}

func (q *Queue) expire(now int64, s Server) {
	for len(q.due) > 0 && q.nodes[q.due[0]].Deadline <= now {
		i := q.due[0]
		h, e := Handle{uint32(i), q.nodes[i].life}, q.nodes[i].Entry
		q.remove(i)
		s.Timeout(h, e)
	}
}

func (q *Queue) offer(now int64, s Server) int64 {
	wake := int64(Never)
	q.stopped, q.parted = false, 0
	q.blocked.reset()
	for c := range q.config.Classes {
		q.cursors[c] = q.lists[c].head
	}
	for {
		i := q.choose(now)
		if i < 0 {
			return wake
		}
		n := &q.nodes[i]
		if n.notBefore > now || q.isBehind(n) {
			q.passOver(i, now, &wake)
			continue
		}
		h := Handle{uint32(i), n.life}
		answer := s.Try(h, n.Entry)
		if q.has(h) && !q.take(i, answer, &wake) {
			return wake
		}
	}
}

// passOver leaves an entry where it is and goes on behind it.
func (q *Queue) passOver(i int32, now int64, wake *int64) {
	n := &q.nodes[i]
	if n.notBefore > now {
		*wake = min(*wake, n.notBefore)
		q.blocked.add(n.held, n.Class)
	}
	q.cursors[n.Class] = n.next
}

// isBehind says whether an entry that goes before, of the same owner or parent, waits for their bucket.
func (q *Queue) isBehind(n *node) bool {
	return q.blocked.has(n.Owner, n.Class) || q.blocked.has(n.Parent, n.Class)
}

// take does what the answer to an offer says. false: the turn is over.
func (q *Queue) take(i int32, a Answer, wake *int64) bool {
	n := &q.nodes[i]
	switch a.what {
	case sent:
		class, cost := n.Class, n.Cost
		q.remove(i)
		if q.config.Discipline == Weighted {
			q.turns.send(class, q.config.Classes[class].Weight, cost)
		}
	case skipped, skippedParent, skippedAlone:
		n.notBefore, n.held = a.until, [...]uint64{skipped: n.Owner, skippedParent: n.Parent, skippedAlone: 0}[a.what]
		*wake = min(*wake, a.until)
		q.blocked.add(n.held, n.Class)
		q.cursors[n.Class] = n.next
	case parted:
		*wake = min(*wake, a.until)
		q.cursors[n.Class] = -1
		q.parted |= 1 << n.Class
	default:
		*wake = min(*wake, a.until)
		q.stopped = true
		return false
	}
	return true
}
