// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"container/heap"
	"time"
)

// schedule puts a quota where it belongs in the plan.
func (c *core) schedule(q *quota) {
	switch {
	case q.ledger != nil:
		q.due = q.ledger.Next()
	case q.lender != nil:
		q.due = q.lender.Next()
	default:
		return
	}
	q.due = max(q.due, c.now+leastBeat)
	if c.now-q.used > quiet {
		q.due = max(q.due, c.now+quiet)
	}
	if q.at < 0 {
		heap.Push(&c.plan, q)
		return
	}
	heap.Fix(&c.plan, q.at)
}

// quiet is after how long without a word of its nodes a quota is looked at less often.
const quiet = int64(2 * time.Second)

// leastBeat is the least time between two looks at one quota: loans come in no shorter time anyway.
const leastBeat = int64(time.Millisecond)

// A plan is the quotas by when they are due.
type plan []*quota

func (p plan) Len() int           { return len(p) }
func (p plan) Less(i, j int) bool { return p[i].due < p[j].due }
func (p plan) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	p[i].at, p[j].at = i, j
}

// Push implements heap.Interface.
func (p *plan) Push(x any) {
	q := x.(*quota)
	q.at = len(*p)
	*p = append(*p, q)
}

// Pop implements heap.Interface.
func (p *plan) Pop() any {
	q := (*p)[len(*p)-1]
	*p, q.at = (*p)[:len(*p)-1], -1
	return q
}
