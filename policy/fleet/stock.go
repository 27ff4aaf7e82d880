// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"strings"
	"time"
)

// A Stock is the controller's side of what does not refill: a day's quota, a tree's budget. It gives nodes chunks, and what
// it has given is gone until a node proves that it has not used it: a node that crashes takes one chunk with it. Counts in
// messages are sums over a life of a node, so that losing or doubling one changes nothing.
type Stock struct {
	key    string
	left   int64 // units that no node has
	params Params
	nodes  map[string]*drawer
}

type drawer struct {
	incarnation, number   uint64
	given, used, returned int64
	known                 int64 // the last that it has said it was given
	seen                  int64
}

// chunkTerm is for how long after a draw a chunk may be used, in ns.
const chunkTerm = int64(time.Minute)

// chunkPart is how many chunks of each node in use the rest is cut into.
const chunkPart = 4

// NewStock makes a stock of which left units have been given to nobody.
func NewStock(key string, left int64, p Params) *Stock {
	return &Stock{key: key, left: left, params: p, nodes: map[string]*drawer{}}
}

// Left is what has been given to nobody.
func (s *Stock) Left() int64 { return s.left }

// Add makes the stock larger, or smaller: then what nodes have may be more than there is, and they get no more until it is not.
func (s *Stock) Add(units int64) { s.left += units }

// A Holder is what a node has of a stock.
type Holder struct {
	Node        string
	Given, Used int64 // units, in this life of the node
}

// Holders are the nodes that have been given something, by name.
func (s *Stock) Holders() (all []Holder) {
	for name, n := range s.nodes {
		at, _ := slices.BinarySearchFunc(all, name, func(h Holder, name string) int { return strings.Compare(h.Node, name) })
		all = slices.Insert(all, at, Holder{name, n.given - n.returned, n.used})
	}
	return all
}

// Draw answers what a node says; nil if it is old news.
func (s *Stock) Draw(now int64, d *Draw) *Chunk {
	n := s.nodes[d.Node]
	switch {
	case n == nil || d.Incarnation > n.incarnation:
		// What an earlier life had and did not return is spent. What this one has, an earlier controller gave it.
		n = &drawer{incarnation: d.Incarnation, given: d.Given, returned: d.Returned}
		s.nodes[d.Node] = n
	case d.Incarnation < n.incarnation || d.Number <= n.number:
		return nil
	}
	if d.Given < n.known { // it has lost count of what it had, which is spent
		n.given, n.returned = d.Given, d.Returned
	}
	n.number, n.seen, n.used, n.known = d.Number, now, d.Used, d.Given
	if back := min(d.Returned, n.given) - n.returned; back > 0 {
		n.returned += back
		s.left += back
	}
	out := n.given - n.used - n.returned
	if chunk := s.chunk(now, d); 2*out < chunk || out < d.Want {
		add := max(min(chunk-out, s.left), 0)
		n.given, s.left = n.given+add, s.left-add
	}
	return &Chunk{d.Incarnation, d.Number, s.key, n.given, chunkTerm}
}

// chunk is what a node should have: a quarter of its part of what is left, or a minute's worth if that is less; enough for
// the call that waits, and a unit at least.
func (s *Stock) chunk(now int64, d *Draw) int64 {
	active := int64(0)
	for _, n := range s.nodes {
		if now-n.seen <= s.params.outlast(chunkTerm) {
			active++
		}
	}
	return max(min(s.left/(chunkPart*max(active, 1)), d.Demand), d.Want, 1)
}

// A Drawer is a node's side of a stock, as far as it talks: what it has lies elsewhere.
type Drawer struct {
	Demand Demand

	node                string
	incarnation, number uint64
	key                 string
	sent                [16]sentTime
}

// NewDrawer makes a drawer. number must be above that of every draw of this quota in this life of the node.
func NewDrawer(node string, incarnation uint64, key string, number uint64) *Drawer {
	return &Drawer{node: node, incarnation: incarnation, key: key, number: number}
}

// Draw makes the message that is to be sent now, of what was given, used and returned in sum, and of what a call waits for.
func (w *Drawer) Draw(now, given, used, returned, want int64) *Draw {
	w.Demand.Offer(now, 0, 0)
	w.number++
	w.sent[w.number%uint64(len(w.sent))] = sentTime{w.number, now}
	return &Draw{
		Node: w.node, Incarnation: w.incarnation, Number: w.number, Key: w.key, Demand: w.Demand.PerWindow(int64(time.Minute)),
		Given: given, Used: used, Returned: returned, Want: want,
	}
}

// Until is when a chunk is over; false if it answers nothing that was asked.
func (w *Drawer) Until(c *Chunk) (until int64, ok bool) {
	sent := w.sent[c.Number%uint64(len(w.sent))]
	if c.Incarnation != w.incarnation || c.Key != w.key || c.Number == 0 || sent.number != c.Number {
		return 0, false
	}
	return sent.at + c.Term, true
}

// A Stash is a node's side of a stock.
type Stash struct {
	Drawer
	given, used, returned int64
	until                 int64
	want                  int64
}

// NewStash makes an empty stash.
func NewStash(node string, incarnation uint64, key string) *Stash {
	return &Stash{Drawer: *NewDrawer(node, incarnation, key, 0)}
}

// Take takes units, if they are there. If not, the next draw asks for them.
func (s *Stash) Take(now, units int64) bool {
	s.Demand.Offer(now, units, 1)
	s.lapse(now)
	if s.given-s.used-s.returned < units {
		s.want = units
		return false
	}
	s.used += units
	s.want = 0
	return true
}

// Settle makes reserved units count as actual. What is more than was given is owed: the next chunk pays for it.
func (s *Stash) Settle(reserved, actual int64) { s.used = max(s.used+actual-reserved, 0) }

// Release gives back all that is not used.
func (s *Stash) Release() { s.returned += max(s.given-s.used-s.returned, 0) }

// lapse gives back what is left when the term is over. The controller counts it as spent until it hears so.
func (s *Stash) lapse(now int64) {
	if now >= s.until {
		s.Release()
	}
}

// Draw makes the message that is to be sent now.
func (s *Stash) Draw(now int64) *Draw {
	s.lapse(now)
	return s.Drawer.Draw(now, s.given, s.used, s.returned, s.want)
}

// Give takes a chunk. One that comes when its term is over goes back with the next draw.
func (s *Stash) Give(now int64, c *Chunk) {
	if until, ok := s.Until(c); ok {
		s.lapse(now)
		s.given, s.until = max(s.given, c.Given), max(s.until, until)
	}
}
