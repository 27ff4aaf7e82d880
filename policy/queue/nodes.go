// SPDX-License-Identifier: Apache-2.0

package queue

// place gives a node that is free.
func (q *Queue) place() int32 {
	if q.free >= 0 {
		i := q.free
		q.free = q.nodes[i].next
		return i
	}
	q.nodes = append(q.nodes, node{})
	return int32(len(q.nodes) - 1)
}

// link puts a node at the end of its class.
func (q *Queue) link(i int32) {
	n := &q.nodes[i]
	l := &q.lists[n.Class]
	n.prev = l.tail
	if l.tail >= 0 {
		q.nodes[l.tail].next = i
	} else {
		l.head = i
	}
	l.tail = i
	l.n++
	l.cost += n.Cost
	q.n++
	q.bytes += n.Bytes
}

// remove takes a node out of everything. A turn that is under way goes on behind it.
func (q *Queue) remove(i int32) {
	n := &q.nodes[i]
	l := &q.lists[n.Class]
	if n.prev >= 0 {
		q.nodes[n.prev].next = n.next
	} else {
		l.head = n.next
	}
	if n.next >= 0 {
		q.nodes[n.next].prev = n.prev
	} else {
		l.tail = n.prev
	}
	if q.cursors[n.Class] == i {
		q.cursors[n.Class] = n.next
	}
	l.n--
	l.cost -= n.Cost
	q.n--
	q.bytes -= n.Bytes
	q.unschedule(i)
	if q.config.Budget != nil {
		q.config.Budget.Give(n.Bytes)
	}
	n.used = false
	n.life++
	n.next, q.free = q.free, i
}

// schedule puts a node with a deadline into the heap.
func (q *Queue) schedule(i int32) {
	if q.nodes[i].Deadline == Never {
		return
	}
	q.due = append(q.due, i)
	q.nodes[i].due = int32(len(q.due) - 1)
	q.up(len(q.due) - 1)
}

// unschedule takes a node out of the heap.
func (q *Queue) unschedule(i int32) {
	at := int(q.nodes[i].due)
	if at < 0 {
		return
	}
	q.nodes[i].due = -1
	end := len(q.due) - 1
	moved := q.due[end]
	q.due = q.due[:end]
	if at == end {
		return
	}
	q.due[at], q.nodes[moved].due = moved, int32(at)
	q.up(at)
	q.down(int(q.nodes[moved].due))
}

func (q *Queue) earlier(a, b int) bool {
	return q.nodes[q.due[a]].Deadline < q.nodes[q.due[b]].Deadline
}

func (q *Queue) swap(a, b int) {
	q.due[a], q.due[b] = q.due[b], q.due[a]
	q.nodes[q.due[a]].due, q.nodes[q.due[b]].due = int32(a), int32(b)
}

func (q *Queue) up(i int) {
	for i > 0 && q.earlier(i, (i-1)/2) {
		q.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (q *Queue) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q.due) {
			return
		}
		if child+1 < len(q.due) && q.earlier(child+1, child) {
			child++
		}
		if !q.earlier(child, i) {
			return
		}
		q.swap(i, child)
		i = child
	}
}
