// SPDX-License-Identifier: Apache-2.0

package queue

// choose gives the node that goes next of those at the cursors; -1 if there is none.
func (q *Queue) choose(now int64) int32 {
	best := int32(-1)
	for c := range q.config.Classes {
		if i := q.cursors[c]; i >= 0 && (best < 0 || q.before(now, i, best)) {
			best = i
		}
	}
	return best
}

// before says whether a goes before b, which is of a higher class.
func (q *Queue) before(now int64, a, b int32) bool {
	x, y := &q.nodes[a], &q.nodes[b]
	switch q.config.Discipline {
	case Strict:
		return false
	case Threshold:
		if q.aged(now, x) {
			return !q.aged(now, y) || x.seq < y.seq
		}
		return false
	case Linear:
		k, l := x.Arrived-q.leads[x.Class], y.Arrived-q.leads[y.Class]
		return k < l || k == l && x.seq < y.seq
	case Weighted:
		k, l := q.turns.next[x.Class], q.turns.next[y.Class]
		return k < l || k == l && x.seq < y.seq
	}
	return x.seq < y.seq
}

// aged says whether an entry has reached its class's threshold.
func (q *Queue) aged(now int64, n *node) bool {
	limit := int64(q.config.Classes[n.Class].Threshold)
	return limit > 0 && now-n.Arrived >= limit
}

// MayPass says whether an arrival of a class may try its buckets without waiting: nobody of an equal or higher class waits,
// and nobody else would go first. If it does and is sent, [Queue.Passed] must be told.
func (q *Queue) MayPass(now int64, class int) bool {
	now = q.tick(now)
	class = q.classOf(class)
	for c := range q.config.Classes {
		i := q.lists[c].head
		if i >= 0 && (c <= class || q.beforeArrival(now, &q.nodes[i], class)) {
			return false
		}
	}
	return true
}

// MayTry is MayPass for an arrival for which there is no place, right after a turn: of those that wait it passes nobody but who
// waits for buckets that are not its own, or for its class's part.
func (q *Queue) MayTry(now int64, class int, owner, parent uint64) bool {
	now = q.tick(now)
	class = q.classOf(class)
	if s := q.Stopped(now); s >= 0 && s <= class || q.parted>>class&1 == 1 || q.blocked.has(owner, class) || q.blocked.has(parent, class) {
		return false
	}
	for c := range q.config.Classes {
		if i := q.cursors[c]; q.stopped && i >= 0 && c != class && q.beforeArrival(now, &q.nodes[i], class) {
			return false
		}
	}
	return true
}

// beforeArrival says whether a queued entry of a lower class goes before an arrival of the class.
func (q *Queue) beforeArrival(now int64, n *node, class int) bool {
	switch q.config.Discipline {
	case Strict:
		return false
	case Threshold:
		return q.aged(now, n)
	case Linear:
		return n.Arrived-q.leads[n.Class] <= now-q.leads[class]
	case Weighted:
		return q.turns.next[n.Class] <= q.turns.next[class]
	}
	return true
}

// Passed says that an arrival of a class was sent without waiting, and what it weighs.
func (q *Queue) Passed(class int, cost int64) {
	if q.config.Discipline == Weighted {
		class = q.classOf(class)
		q.turns.send(class, q.config.Classes[class].Weight, min(max(cost, 1), maxCost))
	}
}

// turns is weighted fair queueing by start tags (Goyal, Vin and Cheng, 1996), one tag for a class, in 1/fullTurn: who has
// the least goes next, and then has cost/weight more. A class that has nobody to send gains nothing by it.
type turns struct {
	now  int64 // tag of the last send
	next [MaxClasses]int64
}

// send notes that a class has sent. All others move up to it at least: nobody saves up turns while it has nothing to send.
func (t *turns) send(class int, weight, cost int64) {
	t.now = max(t.next[class], t.now)
	t.next[class] = t.now + cost*(fullTurn/weight)
	for c := range t.next {
		t.next[c] = max(t.next[c], t.now)
	}
	if t.now > Never/4 { // once in some 10^12 units: begin anew, with the same differences
		for c := range t.next {
			t.next[c] -= t.now
		}
		t.now = 0
	}
}
