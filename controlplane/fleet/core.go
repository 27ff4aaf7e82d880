// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// A core is the controller without clock, network and goroutine.
type core struct {
	log       *slog.Logger
	store     Store
	connected func() int // nodes that there are

	epoch  uint64
	first  bool // there was no controller before
	start  int64
	now    int64
	wall   time.Time
	params fleet.Params
	dir    *directory

	quotas  map[string]*quota
	taken   map[place]*quota
	nodes   map[string]*node
	plan    plan
	records map[string][]byte // as the store has them
	dirty   map[string][]byte // to be saved before anything is sent
	outbox  []*node
	flushAt int64 // when a document that waits is to be sent; 0: none does
	pushes  []fleet.Push
	saved   []func() // what is to be done when the store knows of all that is dirty
	changes []Change
	stats   Counters
	swept   int64

	storeErr error
	retry    int64
}

// Counters count since the controller began.
type Counters struct {
	Reports int64 `json:"reports"` // messages of nodes
	Twice   int64 `json:"twice"`   // of them, such as came before
	Hellos  int64 `json:"hellos"`  // of them, such as were of an earlier epoch
	Pushes  int64 `json:"pushes"`  // documents
	Bytes   int64 `json:"bytes"`   // in them
	Grants  int64 `json:"grants"`
}

// newCore makes a core that begins a new epoch.
func newCore(now int64, wall time.Time, s Store, log *slog.Logger, connected func() int) (*core, error) {
	epoch, err := s.NextEpoch()
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	records, err := s.Load()
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	c := &core{
		log: log, store: s, connected: connected, epoch: epoch, first: epoch == 1, start: now, now: now, wall: wall, swept: now,
		params: fleet.DefaultParams(), quotas: map[string]*quota{}, taken: map[place]*quota{}, nodes: map[string]*node{},
		records: map[string][]byte{}, dirty: map[string][]byte{},
	}
	for _, r := range records {
		if c.records[r.Key] = r.Value; over(r.Value, wall) {
			c.dirty[r.Key] = nil
		}
	}
	return c, nil
}

func (c *core) at(now int64, wall time.Time) {
	c.now, c.wall = max(c.now, now), wall
}

// setPolicy puts a policy in force. Its times apply to quotas that are made from now on.
func (c *core) setPolicy(p *policy.Policy, spec *policy.Spec) {
	c.dir = newDirectory(p, spec)
	c.params = c.dir.params()
	for _, q := range c.quotas {
		c.review(q)
	}
}

// report takes in what a node says. false: it has to be told hello.
func (c *core) report(m *fleet.FromNode) (heard bool) {
	c.stats.Reports++
	n := c.node(m)
	if n == nil || !n.numbers.first(m.Number) {
		c.stats.Twice++
		return true
	}
	n.seen = c.now
	for i := range m.Seen {
		c.seen(n, &m.Seen[i])
	}
	for _, l := range m.Learned {
		if q := c.quota(l.Key); q != nil {
			q.learned = &Learned{l.Limit, l.External, n.id, c.wall}
		}
	}
	for i := range m.Asks {
		c.asks(n, &m.Asks[i])
	}
	for i := range m.Draws {
		c.draw(n, &m.Draws[i])
	}
	if m.Report == nil {
		return true
	}
	return c.holdings(n, m.Report)
}

// node gives the entry of a node; nil for a message of a life that is over.
func (c *core) node(m *fleet.FromNode) *node {
	n := c.nodes[m.Node]
	if n == nil {
		n = &node{id: m.Node, outbox: &c.outbox}
		n.life(m.Incarnation)
		c.nodes[m.Node] = n
	}
	switch {
	case m.Incarnation < n.incarnation:
		return nil
	case m.Incarnation > n.incarnation:
		n.life(m.Incarnation)
	}
	return n
}

func (c *core) holdings(n *node, r *fleet.Report) (heard bool) {
	if r.Epoch != c.epoch {
		if r.Epoch > c.epoch {
			c.log.Error("a node has heard of a newer controller than this one", "node", n.id, "epoch", r.Epoch, "own", c.epoch)
			return true
		}
		c.stats.Hellos++
		return false
	}
	for i := range r.Holdings {
		h := &r.Holdings[i]
		n.acknowledged(h)
		q := c.quota(h.Key)
		switch {
		case q == nil:
		case q.lender != nil:
			n.byToken(c.now, h.Key, n.incarnation)
		case q.ledger != nil:
			q.used = c.now
			q.ledger.Report(c.now, r, h)
			c.schedule(q)
		}
	}
	return true
}

// quota finds a quota, or makes it if the policy has it.
func (c *core) quota(key string) *quota {
	if q := c.quotas[key]; q != nil {
		return q
	}
	name, ok := fleet.ParseName(key)
	if !ok || c.dir == nil {
		return nil
	}
	return c.newQuota(name, key)
}

func (c *core) asks(n *node, a *fleet.Asks) {
	q := c.quota(a.Key)
	if q == nil || q.lender == nil {
		return
	}
	q.used = c.now
	if q.off {
		a.Asks = nil // what was lent may still come back
	} else {
		n.byToken(c.now, a.Key, n.incarnation)
	}
	q.lender.Hear(c.now, a)
	c.schedule(q)
}

func (c *core) draw(n *node, d *fleet.Draw) {
	q := c.quota(d.Key)
	if q == nil || q.stock == nil || q.off {
		return
	}
	q.used = c.now
	if chunk := q.stock.Draw(c.now, d); chunk != nil {
		c.saved = append(c.saved, func() {
			if n.incarnation == chunk.Incarnation {
				n.chunk(c.now, *chunk)
			}
		})
	}
	c.keepStock(q)
	c.schedule(q)
}

const stockRecord = "stock/"

// keepStock makes sure that the store never says that less was given than was. It is told a little more, so that it need not be
// told each time.
func (c *core) keepStock(q *quota) {
	if given := q.shared.Limit - q.stock.Left(); given > q.gone {
		q.gone = min(given+q.shared.Limit/stockStep, max(given, q.shared.Limit))
		c.keep(stockRecord+q.key, q.gone, c.wall.Add(time.Duration(q.ends-c.now)).Unix())
		q.kept = true
	}
}

// stockStep is into how many steps a stock is cut that a crash loses one of.
const stockStep = 100

// keep keeps a number until a time of the wall clock; 0: for ever.
func (c *core) keep(key string, v, until int64) {
	c.dirty[key] = binary.AppendVarint(binary.AppendVarint(nil, v), until)
}

func decode(b []byte) (v, until int64, ok bool) {
	v, n := binary.Varint(b)
	if n <= 0 {
		return 0, 0, false
	}
	until, m := binary.Varint(b[n:])
	return v, until, m > 0
}

func over(b []byte, wall time.Time) bool {
	_, until, ok := decode(b)
	return ok && until != 0 && until < wall.Unix()
}

// load gives what was kept, or else another number: absent if there is no record, or one that is over, and broken if it cannot be
// read.
func (c *core) load(key string, absent, broken int64) (v int64, kept bool) {
	b, ok := c.records[key]
	if !ok || over(b, c.wall) {
		return absent, false
	}
	if v, _, ok = decode(b); !ok {
		return broken, true
	}
	return v, true
}

// tick does what is due, and gives the documents to send, by node. If the store fails, nothing of a stock is given that it does
// not know of, and no floor; shares go on otherwise, for they do not outlive the controller.
func (c *core) tick() (documents map[string][]byte, err error) {
	for len(c.plan) > 0 && c.plan[0].due <= c.now {
		c.serve(c.plan[0])
	}
	c.sweep()
	if err = c.save(); err == nil {
		for _, f := range c.saved {
			f()
		}
		clear(c.saved)
		c.saved = c.saved[:0]
	}
	return c.flush(), err
}

// flush gives the documents of all nodes that wait for one, and of others that have waited for company.
func (c *core) flush() map[string][]byte {
	documents := map[string][]byte{}
	later := c.outbox[:0]
	c.flushAt = 0
	for _, n := range c.outbox {
		if c.now < n.due {
			later = append(later, n)
			if c.flushAt == 0 || n.due < c.flushAt {
				c.flushAt = n.due
			}
			continue
		}
		if b := n.document(c.now, c.epoch); b != nil && c.nodes[n.id] == n {
			documents[n.id] = b
			c.stats.Pushes++
			c.stats.Bytes += int64(len(b))
		}
	}
	clear(c.outbox[len(later):])
	c.outbox = later
	return documents
}

func (c *core) serve(q *quota) {
	switch {
	case q.ledger != nil:
		c.adaptTick(q)
		c.pushes = q.ledger.Rebalance(c.now, c.pushes[:0])
		c.stats.Grants += int64(len(c.pushes))
		c.keepSeats(q)
		for _, p := range c.pushes {
			c.deliver(q, &p)
		}
	case q.lender != nil:
		c.adaptTick(q)
		for _, l := range q.lender.Serve(c.now) {
			if n := c.nodes[l.Node]; n != nil && n.incarnation == l.Incarnation {
				c.stats.Grants += int64(len(l.IDs))
				n.lend(c.now, l.Lent)
			}
		}
	}
	c.schedule(q)
}

// retryStore is how soon a store that failed is tried again.
const retryStore = int64(100 * time.Millisecond)

// save tells the store what it has to know before anything is sent.
func (c *core) save() error {
	if len(c.dirty) == 0 || c.now < c.retry {
		return c.storeErr
	}
	var records []Record
	for k, v := range c.dirty {
		records = append(records, Record{k, v})
	}
	if c.storeErr = c.store.Save(records); c.storeErr != nil {
		c.retry = c.now + retryStore
		return c.storeErr
	}
	for k, v := range c.dirty {
		if v == nil {
			delete(c.records, k)
		} else {
			c.records[k] = v
		}
	}
	clear(c.dirty)
	return nil
}

const sweepEvery = int64(time.Second)

// sweep drops what is over.
func (c *core) sweep() {
	if c.now-c.swept < sweepEvery {
		return
	}
	c.swept = c.now
	for key, q := range c.quotas {
		if c.idle(q) {
			c.drop(key, q)
		}
	}
	for id, n := range c.nodes {
		if c.now-n.seen > forgetNode {
			delete(c.nodes, id)
		}
	}
}

// forgetNode is how long a node is remembered that says nothing. Nothing depends on it but which messages came twice.
const forgetNode = int64(10 * time.Minute)

func (c *core) drop(key string, q *quota) {
	delete(c.quotas, key)
	if p := placeOf(q.name); c.taken[p] == q {
		delete(c.taken, p)
	}
	if q.at >= 0 {
		heap.Remove(&c.plan, q.at)
	}
	if q.kept {
		c.dirty[stockRecord+key] = nil
	}
	for _, n := range c.nodes {
		n.forget(key)
	}
}

// next is when tick has to be called again, in ns.
func (c *core) next() int64 {
	next := c.swept + sweepEvery
	if c.flushAt > 0 {
		next = min(next, c.flushAt)
	}
	if len(c.plan) > 0 {
		next = min(next, c.plan[0].due)
	}
	return next
}

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
