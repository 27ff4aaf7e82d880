// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"time"

	"github.com/weirproxy/weir/policy/fleet"
)

// A node is what the controller has on an Envoy beside what the quotas have: what it has been told and has not acknowledged.
type node struct {
	id          string
	incarnation uint64
	kept        bool // the store knows of this life
	seen        int64
	numbers     window
	grants      map[string]fleet.Grant
	last        map[string]int64 // rate of the last grant
	lent        map[string]lent
	chunks      map[string]fleet.Chunk
	rates       map[string]fleet.Rate
	sent        []byte // the last document
	changed     bool
	due         int64    // when it is to be sent
	outbox      *[]*node // who has something to be sent
}

// touch notes that there is something to be sent, and how long it can wait for company.
func (n *node) touch(now, wait int64) {
	if !n.changed {
		n.changed, n.due = true, now+wait
		*n.outbox = append(*n.outbox, n)
	}
	n.due = min(n.due, now+wait)
}

// How long a document waits: not at all where calls wait for it; where a share is taken back or renewed, longer than ledgers take
// to answer one report or one policy, so that what several quotas say to a node goes together.
const (
	atOnce  = 0
	soon    = int64(30 * time.Millisecond)
	anytime = int64(60 * time.Millisecond)
)

// lent is tokens that are said for a while: nobody acknowledges them but by using them.
type lent struct {
	fleet.Lent
	until int64
}

// lentFor is how long tokens stay in the document; a node that has not had them by then asks again after a second.
const lentFor = int64(1500 * time.Millisecond)

// life begins a new life of the node: what was said to the one before means nothing to it.
func (n *node) life(incarnation uint64) {
	n.incarnation = incarnation
	n.numbers = window{}
	n.grants, n.lent, n.chunks = map[string]fleet.Grant{}, map[string]lent{}, map[string]fleet.Chunk{}
	n.rates, n.last = map[string]fleet.Rate{}, map[string]int64{}
}

// grant says a grant.
func (n *node) grant(now int64, g *fleet.Grant) {
	if n.grants[g.Key].Version > g.Version {
		return // this one had to wait for the store
	}
	delete(n.lent, g.Key)
	last, known := n.last[g.Key]
	n.grants[g.Key], n.last[g.Key] = *g, g.Rate
	switch {
	case !known || g.Rate-last > last/10:
		n.touch(now, atOnce)
	case g.Ack:
		n.touch(now, soon)
	default:
		n.touch(now, anytime)
	}
}

func (n *node) lend(now int64, l fleet.Lent) {
	old := n.lent[l.Key]
	if now < old.until { // both, and in one part: the ids before may not have been seen
		l.IDs = append(old.IDs, l.IDs...)
	}
	delete(n.grants, l.Key)
	n.lent[l.Key] = lent{l, now + lentFor}
	n.touch(now, atOnce)
}

// byToken says that a quota is lent by the token.
func (n *node) byToken(now int64, key string, incarnation uint64) {
	if _, ok := n.lent[key]; !ok {
		n.lent[key] = lent{Lent: fleet.Lent{Incarnation: incarnation, Key: key}}
		n.touch(now, atOnce)
	}
}

func (n *node) chunk(now int64, c fleet.Chunk) {
	n.chunks[c.Key] = c
	n.touch(now, atOnce)
}

// acknowledged drops a grant that the node has applied, or that a later one has replaced.
func (n *node) acknowledged(h *fleet.Holding) {
	if g, ok := n.grants[h.Key]; ok && h.Version >= g.Version {
		delete(n.grants, h.Key)
	}
}

// forget drops what is said of a quota.
func (n *node) forget(key string) {
	delete(n.grants, key)
	delete(n.last, key)
	delete(n.lent, key)
	delete(n.chunks, key)
	delete(n.rates, key)
}

// document gives the bytes to send, nil if they are those that were sent last.
func (n *node) document(now int64, epoch uint64) []byte {
	n.changed = false
	m := fleet.ToNode{Shares: fleet.Shares{Epoch: epoch, Incarnation: n.incarnation}}
	for _, k := range slices.Sorted(maps.Keys(n.grants)) {
		m.Shares.Grants = append(m.Shares.Grants, n.grants[k])
	}
	for _, k := range slices.Sorted(maps.Keys(n.lent)) {
		l := n.lent[k]
		if now >= l.until {
			l.IDs = nil
			n.lent[k] = l
		}
		m.Lent = append(m.Lent, l.Lent)
	}
	for _, k := range slices.Sorted(maps.Keys(n.chunks)) {
		m.Chunks = append(m.Chunks, n.chunks[k])
	}
	for _, k := range slices.Sorted(maps.Keys(n.rates)) {
		m.Rates = append(m.Rates, n.rates[k])
	}
	b := m.Encode()
	for len(b) > fleet.MaxMessage { // the rest has its turn when these have been taken
		m.Shares.Grants, m.Lent, m.Chunks = m.Shares.Grants[:len(m.Shares.Grants)/2], m.Lent[:len(m.Lent)/2], m.Chunks[:len(m.Chunks)/2]
		b = m.Encode()
	}
	if string(b) == string(n.sent) {
		return nil
	}
	n.sent = b
	return b
}

// A window remembers which of the last 64 numbers have come.
type window struct{ last, seen uint64 }

// first says whether a number has not come before, and takes it down. One that is too old to tell has.
func (w *window) first(n uint64) bool {
	if n > w.last {
		if d := n - w.last; d < 64 {
			w.seen <<= d
		} else {
			w.seen = 0
		}
		w.last, w.seen = n, w.seen|1
		return true
	}
	d := w.last - n
	if d >= 64 || w.seen>>d&1 == 1 {
		return false
	}
	w.seen |= 1 << d
	return true
}
