// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/big"
	"slices"
)

// A naive is the obvious queue: one list in order of arrival, searched from end to end for each question.
type naive struct {
	config Config
	list   []*waiting
	sends  []naiveSend
	order  int

	stopped int // as Queue.Stopped after the last turn
}

type waiting struct {
	Entry
	order     int
	notBefore int64
	held      uint64
	handle    Handle
}

// A naiveSend is one send, and who else had somebody waiting then.
type naiveSend struct {
	class   int
	cost    int64
	waiting [MaxClasses]bool
}

func (q *naive) push(now int64, e Entry, expected int64) (*waiting, Outcome) {
	var bytes int64
	for _, w := range q.list {
		bytes += w.Bytes
	}
	switch {
	case e.Deadline != 0 && now+expected >= e.Deadline:
		return nil, QueueTimeout
	case len(q.list) == q.config.Entries || bytes+e.Bytes > q.config.Bytes:
		return nil, QueueFull
	}
	e.Arrived = now
	w := &waiting{Entry: e, order: q.order}
	q.order++
	q.list = append(q.list, w)
	return w, Queued
}

func (q *naive) remove(w *waiting) {
	for i := range q.list {
		if q.list[i] == w {
			q.list = append(q.list[:i:i], q.list[i+1:]...)
			return
		}
	}
}

// tags gives each class's start tag, from all sends there ever were.
func (q *naive) tags() []*big.Rat {
	now := new(big.Rat)
	next := make([]*big.Rat, len(q.config.Classes))
	for c := range next {
		next[c] = new(big.Rat)
	}
	for _, s := range q.sends {
		if next[s.class].Cmp(now) > 0 {
			now = new(big.Rat).Set(next[s.class])
		}
		for c := range next {
			if !s.waiting[c] && next[c].Cmp(now) < 0 {
				next[c].Set(now)
			}
		}
		next[s.class] = new(big.Rat).Add(now, big.NewRat(s.cost, max(q.config.Classes[s.class].Weight, 1)))
	}
	for c := range next { // who comes now begins where the others are
		if next[c].Cmp(now) < 0 {
			next[c].Set(now)
		}
	}
	return next
}

// first gives who goes first of those that are left.
func (q *naive) first(now int64, left []*waiting) (best *waiting) {
	tags := q.tags()
	for _, w := range left {
		if best == nil || q.goesBefore(now, w, best, tags) {
			best = w
		}
	}
	return best
}

// goesBefore is the definition of each discipline, word by word.
func (q *naive) goesBefore(now int64, a, b *waiting, tags []*big.Rat) bool {
	older := a.order < b.order
	if a.Class == b.Class {
		return older
	}
	ca, cb := q.config.Classes[a.Class], q.config.Classes[b.Class]
	switch q.config.Discipline {
	case Strict:
		return a.Class < b.Class
	case Threshold:
		agedA := ca.Threshold > 0 && now-a.Arrived >= int64(ca.Threshold)
		agedB := cb.Threshold > 0 && now-b.Arrived >= int64(cb.Threshold)
		if agedA && agedB {
			return older
		}
		if agedA != agedB {
			return agedA
		}
		return a.Class < b.Class
	case Linear:
		value := func(w *waiting, c Class) *big.Rat {
			rate := new(big.Rat).SetFloat64(q.config.Rate)
			age := rate.Mul(rate, big.NewRat(now-w.Arrived, 1e9))
			return age.Add(age, new(big.Rat).SetFloat64(c.Priority))
		}
		if d := value(a, ca).Cmp(value(b, cb)); d != 0 {
			return d > 0
		}
		return older
	case Weighted:
		if d := tags[a.Class].Cmp(tags[b.Class]); d != 0 {
			return d < 0
		}
		return older
	}
	return older
}

// turn offers, and gives when the next turn is due.
func (q *naive) turn(now int64, try func(*waiting) Answer, timeout func(*waiting)) int64 {
	for {
		var due *waiting
		for _, w := range q.list {
			if w.Deadline != 0 && w.Deadline <= now && (due == nil || w.Deadline < due.Deadline) {
				due = w
			}
		}
		if due == nil {
			break
		}
		q.remove(due)
		timeout(due)
	}
	wake := q.offer(now, try)
	oldest := map[int]bool{}
	for _, w := range q.list {
		if w.Deadline != 0 {
			wake = min(wake, w.Deadline)
		}
		limit := int64(q.config.Classes[w.Class].Threshold)
		if q.config.Discipline == Threshold && !oldest[w.Class] && limit > 0 && w.Arrived+limit > now {
			wake = min(wake, w.Arrived+limit)
		}
		oldest[w.Class] = true
	}
	return wake
}

func (q *naive) offer(now int64, try func(*waiting) Answer) int64 {
	wake := int64(Never)
	q.stopped = -1
	left := append([]*waiting(nil), q.list...)
	refused := []*waiting{} // in this turn
	for len(left) > 0 {
		w := q.first(now, left)
		for i := range left {
			if left[i] == w {
				left = append(left[:i:i], left[i+1:]...)
				break
			}
		}
		isBehind := func(w *waiting) (behind bool) {
			for _, r := range refused {
				behind = behind || r.held != 0 && (r.held == w.Owner || r.held == w.Parent) && r.Class <= w.Class
			}
			return behind
		}
		if w.notBefore > now {
			wake = min(wake, w.notBefore)
			refused = append(refused, w)
			continue
		}
		if isBehind(w) {
			continue
		}
		switch a := try(w); a.what {
		case sent:
			s := naiveSend{class: w.Class, cost: max(w.Cost, 1)}
			for _, o := range q.list {
				s.waiting[o.Class] = true
			}
			q.sends = append(q.sends, s)
			q.remove(w)
		case skipped, skippedParent, skippedAlone:
			w.notBefore, w.held = a.until, map[uint8]uint64{skipped: w.Owner, skippedParent: w.Parent}[a.what]
			wake = min(wake, a.until)
			refused = append(refused, w)
		case parted:
			wake = min(wake, a.until)
			left = slices.DeleteFunc(left, func(o *waiting) bool { return o.Class == w.Class })
		default:
			for _, o := range append(left, w) {
				if o.notBefore <= now && !isBehind(o) && (q.stopped < 0 || o.Class < q.stopped) {
					q.stopped = o.Class
				}
			}
			return min(wake, a.until)
		}
	}
	return wake
}
