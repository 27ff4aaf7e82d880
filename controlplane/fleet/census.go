// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/weirproxy/weir/policy/fleet"
)

// A new controller must not lend what may be out. It would have to wait until the leases of the one before are over and no ring
// remembers what was spent under them: more than a minute. So the store knows each life of an Envoy before that is sent anything, and
// when all of them have said what they hold there is nothing more to learn (RATIONALE.md, "Why does the store know each Envoy?").
type census struct {
	awaited map[string]bool   // records of lives that have not told all; nil: nobody knows who there is
	lives   map[string]int64  // records, and when they were last heard of
	newest  map[string]uint64 // life of a node
	number  map[string]int    // of lives of a node that are remembered
	greeted int64
	longest int64 // ns that rings remember
	over    bool
}

const (
	livesRecord = "lives/"
	livesBegun  = livesRecord // there is one in a store that has all lives
)

func lifeRecord(node string, incarnation uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(livesRecord+node+"\x00"), incarnation))
}

func parseLife(record string) (node string, incarnation uint64, ok bool) {
	s, ok := strings.CutPrefix(record, livesRecord)
	if at := len(s) - 9; ok && at > 0 && s[at] == 0 {
		return s[:at], binary.BigEndian.Uint64([]byte(s[at+1:])), true
	}
	return "", 0, false
}

// takeCensus finds out who may hold anything.
func (c *core) takeCensus() {
	s := &c.census
	s.awaited, s.lives, s.newest = map[string]bool{}, map[string]int64{}, map[string]uint64{}
	s.number = map[string]int{}
	for key := range c.records {
		if node, incarnation, ok := parseLife(key); ok {
			s.lives[key], s.awaited[key] = c.start, true
			s.number[node]++
			s.newest[node] = max(s.newest[node], incarnation)
		}
	}
	_, begun := c.records[livesBegun]
	known := c.whole && begun
	s.over = c.first || known && len(s.awaited) == 0
	if !known {
		s.awaited = nil
	}
}

// Who has nothing to report is told of this controller, as soon as it has a stream.
const (
	greetEvery = int64(500 * time.Millisecond)
	greetFor   = int64(2 * time.Minute)
)

// greetings are documents that tell of this controller.
func (c *core) greetings() map[string][]byte {
	s, documents := &c.census, map[string][]byte{}
	if s.over || len(s.awaited) == 0 || c.now > c.start+greetFor || c.now < s.greeted+greetEvery {
		return documents
	}
	s.greeted = c.now
	for node, incarnation := range s.newest {
		if c.nodes[node] == nil {
			documents[node] = (&fleet.ToNode{Shares: fleet.Shares{Epoch: c.epoch, Incarnation: incarnation}}).Encode()
		}
	}
	return documents
}

// maxLives bounds the lives of one node that are remembered: each is a record in the store.
const maxLives = 1000

// mayBegin says whether a node may begin a life.
func (c *core) mayBegin(m *fleet.FromNode) bool {
	_, known := c.census.lives[lifeRecord(m.Node, m.Incarnation)]
	return known || c.census.number[m.Node] < maxLives
}

// register has the store know of a life before it is sent anything.
func (c *core) register(n *node) {
	key := lifeRecord(n.id, n.incarnation)
	if _, again := c.census.lives[key]; !again {
		c.census.number[n.id]++
	}
	c.census.lives[key] = c.now
	_, known := c.records[key]
	_, dirty := c.dirty[key]
	if n.kept = known && !dirty; n.kept {
		return
	}
	c.dirty[key] = []byte{1}
	c.saved = append(c.saved, func() { n.kept = n.kept || lifeRecord(n.id, n.incarnation) == key })
}

// toldAll ends what there is to learn with the last that tells.
func (c *core) toldAll(n *node) {
	s := &c.census
	delete(s.awaited, lifeRecord(n.id, n.incarnation))
	if s.over || s.awaited == nil || len(s.awaited) > 0 {
		return
	}
	s.over = true
	for _, q := range c.quotas {
		if q.ledger != nil {
			q.ledger.EndLearning(c.now)
			c.schedule(q)
		}
	}
}

// sweepCensus forgets lives of which nothing can be left.
func (c *core) sweepCensus() {
	s := &c.census
	for _, n := range c.nodes {
		s.lives[lifeRecord(n.id, n.incarnation)] = n.seen
	}
	for _, q := range c.quotas {
		s.longest = max(s.longest, q.shared.Memory)
	}
	last := c.now - forgetNode - 2*s.longest
	for key, seen := range s.lives {
		if seen < last {
			delete(s.lives, key)
			c.dirty[key] = nil
			node, _, _ := parseLife(key)
			if s.number[node]--; s.number[node] <= 0 {
				delete(s.number, node)
			}
		}
	}
	if _, begun := c.records[livesBegun]; !begun && (c.first || c.start < last) {
		c.dirty[livesBegun] = []byte{1}
	}
}
