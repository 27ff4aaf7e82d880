// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// OnLimit is what becomes of a request that a limit refuses for now.
type OnLimit uint8

// What may become of it.
const (
	OnLimitDeny    OnLimit = iota // it is refused
	OnLimitQueue                  // it waits
	OnLimitDegrade                // it is sent to a smaller model
	OnLimitSpill                  // it is sent elsewhere
	numOnLimit
)

var onLimitNames = [numOnLimit]string{"deny", "queue", "degrade", "spill"}

func (o OnLimit) String() string { return nameOf(onLimitNames[:], o) }

// A Class is a priority class, ready for use.
type Class struct {
	Name    string
	OnLimit OnLimit
	Wait    time.Duration // at most, in the queue
	Aging   time.Duration // the age from which it goes before higher classes; 0: never
	Weight  int64         // of its sends, where the queue is weighted; 1 to maxWeight
	Share   Share         // of the limits of models; 0: it has no part of its own
	Keep    bool          // its share is not lent
	Queues  bool          // its requests may wait, by the class itself or by a route
}

// A QueueRule is what may wait in all workers together, and in which order it goes.
type QueueRule struct {
	Entries, Bytes int64
	Weighted       bool // classes get sends in the ratio of their weights; else the highest class goes first
}

// A route gives requests of a path a class, or another end at a limit.
type route struct {
	class   int // -1: none
	onLimit OnLimit
	says    bool // it names onLimit
}

// defaultWait is how long a class that queues waits at most if the policy does not say.
const (
	defaultWait = 30 * time.Second
	maxWait     = 4 * time.Minute // Envoys close streams in which nothing moves for five
	maxClasses  = 8
	maxWeight   = 16 // package queue has the same
)

// classes compiles the classes, the one with the highest priority first: that is what the policy says, or else the share.
func (c *compiler) classes(p *Policy) {
	names := sortedKeys(c.spec.Classes)
	if len(names) > maxClasses {
		c.add("classes", "", "%d classes, at most %d", len(names), maxClasses)
	}
	rank := func(name string) float64 {
		if s := c.spec.Classes[name]; s.Priority != 0 {
			return s.Priority
		}
		return float64(c.spec.Classes[name].Share) * 100 / float64(Whole)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(b), rank(a)) })
	sum := Share(0)
	for _, name := range names {
		s, path := c.spec.Classes[name], Join("classes", name)
		c.name(path, name, 64)
		wait := cmp.Or(time.Duration(s.Wait), defaultWait)
		if wait > maxWait {
			c.add(Join(path, "wait"), "write 30s", "%v is more than %v", wait, maxWait)
		}
		p.Classes = append(p.Classes, Class{
			Name: name, OnLimit: c.onLimit(path, s.OnLimit), Wait: wait, Aging: time.Duration(s.Aging),
			Weight: c.weight(path, &s), Share: s.Share, Keep: s.Borrow != nil && !*s.Borrow,
		})
		sum += s.Share
	}
	for _, class := range p.Classes {
		if class.Share == 0 && sum == Whole && !slices.ContainsFunc(p.Classes, func(o Class) bool { return o.Share > 0 && !o.Keep }) {
			c.add(Join("classes", class.Name), "give it a share, or let others lend theirs", "the others have all of every limit, and lend nothing")
		}
	}
	if sum > Whole {
		c.add("classes", "make them 100% or less", "the shares add up to %d%%", int64(sum)*100/int64(Whole))
	}
	if len(names) == 0 {
		p.Classes = []Class{{Name: defaultName, Wait: defaultWait}}
	}
	for i := range p.Classes {
		p.Classes[i].Queues = p.Classes[i].OnLimit == OnLimitQueue
	}
	c.routes(p)
	c.queue(p)
}

// weight compiles what the order of the queue needs of a class.
func (c *compiler) weight(path string, s *ClassSpec) int64 {
	weighted := c.spec.Queue.Order == "weighted"
	switch {
	case s.Weight > maxWeight:
		c.add(Join(path, "weight"), "write the ratio in small numbers, such as 3", "%d is more than %d", s.Weight, maxWeight)
	case s.Weight > 0 && !weighted:
		c.add(Join(path, "weight"), "write queue: {order: weighted}, or leave it out", "only a weighted queue has weights")
	case s.Aging > 0 && weighted:
		c.add(Join(path, "aging"), "leave it out: no class starves another", "a weighted queue does not age")
	}
	return cmp.Or(int64(s.Weight), 1)
}

// queue compiles the bounds of what waits.
func (c *compiler) queue(p *Policy) {
	q := c.spec.Queue
	p.Queue.Entries, p.Queue.Bytes = int64(cmp.Or(q.Entries, 1000)), int64(cmp.Or(q.Bytes, 64<<20))
	p.Queue.Weighted = c.oneOf("queue.order", q.Order, "priority", "priority", "weighted") == "weighted"
	if p.Queue.Entries > maxEntries {
		c.add("queue.entries", "write 1000", "%d is more than %d", p.Queue.Entries, maxEntries)
	}
}

// maxEntries is how many requests may wait.
const maxEntries = 1 << 16

// Classed says whether it makes a difference of which class a request is.
func (p *Policy) Classed() bool {
	return len(p.Classes) > 1 || p.Classes[0].OnLimit != OnLimitDeny || p.routes.Len() > 0
}

func (c *compiler) onLimit(path, word string) OnLimit {
	path = Join(path, "on_limit")
	word = c.goes(path, c.oneOf(path, word, "deny", onLimitNames[:]...))
	return OnLimit(slices.Index(onLimitNames[:], word))
}

func (c *compiler) routes(p *Policy) {
	for i, s := range c.spec.Routes {
		path := fmt.Sprintf("routes[%d]", i)
		if !strings.HasPrefix(s.Match.Path, "/") {
			c.add(Join(Join(path, "match"), "path"), "write a path such as /openai/v1/embeddings, with * for anything", "%q is no path", s.Match.Path)
		}
		r := route{class: -1, says: s.OnLimit != "", onLimit: c.onLimit(path, s.OnLimit)}
		if s.Class != "" {
			if r.class = p.classNamed(s.Class); r.class < 0 {
				c.add(Join(path, "class"), "write one of "+strings.Join(sortedKeys(c.spec.Classes), ", "), "no class %q", s.Class)
			}
		}
		for i := range p.Classes {
			p.Classes[i].Queues = p.Classes[i].Queues || r.onLimit == OnLimitQueue && (r.class < 0 || r.class == i)
		}
		p.routes.Add(s.Match.Path, r)
	}
}

func (p *Policy) classNamed(name string) int {
	return slices.IndexFunc(p.Classes, func(c Class) bool { return c.Name == name })
}

// ClassOf gives the class of a request: its route's, else the one that it names, else the one of who names none: the lowest. A
// caller that is not trusted may name a class below the one that it would have without its word, base, and no other.
func (p *Policy) ClassOf(path, named, base string, trusted bool) (index int, class Class) {
	r, routed := p.routes.Lookup(path)
	index = p.classNamed(base)
	if claimed := p.classNamed(named); claimed >= 0 && (trusted || claimed > index) {
		index = claimed
	}
	if routed && r.class >= 0 {
		index = r.class
	}
	if index < 0 {
		index = len(p.Classes) - 1
	}
	class = p.Classes[index]
	if routed && r.says {
		class.OnLimit = r.onLimit
	}
	return index, class
}
