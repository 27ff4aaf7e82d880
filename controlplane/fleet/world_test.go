// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane/fleet/fleettest"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// memory is a store that outlives controllers.
type memory struct {
	epoch   uint64
	records map[string][]byte
	broken  bool
	saves   int
}

func (m *memory) NextEpoch() (uint64, bool, error) { m.epoch++; return m.epoch, m.epoch == 1, nil }
func (m *memory) Load() (all []Record, whole bool, err error) {
	for k, v := range m.records {
		all = append(all, Record{k, v})
	}
	return all, true, nil
}
func (m *memory) Save(rs []Record) error {
	if m.broken {
		return errors.New("broken")
	}
	m.saves++
	for _, r := range rs {
		if r.Value == nil {
			delete(m.records, r.Key)
			continue
		}
		m.records[r.Key] = r.Value
	}
	return nil
}

func count(n policy.Count) *policy.Count { return &n }

func worldSpec() *policy.Spec {
	return &policy.Spec{
		APIVersion: policy.APIVersion,
		Providers: map[string]policy.ProviderSpec{"p": {Upstream: "http://127.0.0.1:1", Dialect: "generic", Models: map[string]*policy.LimitSpec{
			"m": {TPM: count(60_000)}, "small": {RPM: count(10)},
		}}},
		Limits: policy.LimitsSpec{
			Tenant: map[string]*policy.LimitSpec{"default": {RPD: count(1000), Reset: &policy.Reset{Zone: "UTC"}}},
			Tree:   map[string]*policy.TreeSpec{"default": {Calls: 200}},
		},
	}
}

func compile(t testing.TB, s *policy.Spec) *policy.Policy {
	t.Helper()
	p, err := policy.Compile(s)
	must(t, err)
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nameOf names the meter of a limit.
func nameOf(p *policy.Policy, tier policy.Tier, entry string, key policy.Key, d policy.Dimension, wall time.Time) (n fleet.Name, m *policy.Meter) {
	for _, e := range p.Entries() {
		if e.Tier != tier || e.Name != entry {
			continue
		}
		for i := range e.Limit.Meters {
			if m = &e.Limit.Meters[i]; m.Dimension == d {
				n = fleet.Name{Tier: tier, Dimension: d, Key: key, Entry: policy.EntryKey(p.Hasher, tier, entry), Window: m.Window().Milliseconds()}
				if e.Key != 0 {
					n.Key = e.Key
				}
				if m.Kind == policy.Fixed {
					_, until := m.WindowAt(wall.UnixNano())
					n.Period = until / int64(time.Second)
				}
				return n, m
			}
		}
	}
	panic("no such limit: " + entry)
}

// A world has a core, nodes and a network in virtual time.
type world struct {
	t      testing.TB
	rng    *rand.Rand
	now    int64
	store  *memory
	spec   *policy.Spec
	policy *policy.Policy
	core   *core // nil: down
	nodes  []*worldNode
	mail   []letter
	loss   float64
	delay  int64 // mean, ns

	spent  map[string][]spending // by key, for ever
	wanted map[string]int64
	fault  func(*world) // after each start of a controller
}

type spending struct{ at, units int64 }

type letter struct {
	at   int64
	open func()
}

// deliver opens the letters that have come. Those who open them may write others.
func deliver(mail *[]letter, now int64) {
	var rest, due []letter
	for _, l := range *mail {
		if l.at <= now {
			due = append(due, l)
		} else {
			rest = append(rest, l)
		}
	}
	*mail = rest
	for _, l := range due {
		l.open()
	}
}

type worldNode struct {
	*fleettest.Envoy
	up       bool
	offset   int64
	share    *fleettest.Share
	small    string
	unknown  *fleettest.Share // small, before the controller has said that it is lent
	day      *fleet.Stash
	tree     *fleet.Stash
	dayKey   string
	treeKey  string
	demand   float64 // tokens per second
	rest     float64
	calls    float64 // per second, of the small quota and the stocks
	callRest float64
}

var worldWall = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newWorld(t testing.TB, seed uint64, nodes int) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), now: 1, store: &memory{records: map[string][]byte{}}, spec: worldSpec(), delay: int64(20 * time.Millisecond),
		spent: map[string][]spending{}, wanted: map[string]int64{},
	}
	w.policy = compile(t, w.spec)
	w.start()
	for i := range nodes {
		n := &worldNode{offset: w.rng.Int64N(1e12), demand: 200, calls: 0.1}
		w.nodes = append(w.nodes, n)
		w.startNode(n, "envoy-"+string(rune('a'+i)), 1)
	}
	return w
}

func (w *world) wall() time.Time { return worldWall.Add(time.Duration(w.now)) }

func (w *world) start() {
	c, err := newCore(w.now, w.wall(), w.store, slog.New(slog.DiscardHandler), func() int { return len(w.nodes) })
	must(w.t, err)
	c.setPolicy(w.policy, w.spec)
	w.core = c
	if w.fault != nil {
		w.fault(w)
	}
}

func (n *worldNode) local(now int64) int64 { return now + n.offset }

func (w *world) startNode(n *worldNode, name string, incarnation uint64) {
	n.Envoy, n.up = fleettest.New(name, incarnation, fleet.DefaultParams()), true
	tokens, m := nameOf(w.policy, policy.TierProvider, "p/m", 0, policy.TPM, w.wall())
	n.share = n.Share(n.local(w.now), tokens.String(), int64(m.Window()), fleet.MemoryOf(int64(m.Window()), int64(w.policy.Fleet.Jitter)))
	small, m := nameOf(w.policy, policy.TierProvider, "p/small", 0, policy.RPM, w.wall())
	n.small = small.String()
	// What is lent is reported as a share at first.
	n.unknown = n.Share(n.local(w.now), n.small, int64(m.Window()), fleet.MemoryOf(int64(m.Window()), int64(w.policy.Fleet.Jitter)))
	day, _ := nameOf(w.policy, policy.TierTenant, "default", 77, policy.RPD, w.wall())
	tree, _ := nameOf(w.policy, policy.TierTree, "default", 78, policy.TreeCalls, w.wall())
	n.dayKey, n.treeKey = day.String(), tree.String()
	n.day, n.tree = n.Stash(n.dayKey), n.Stash(n.treeKey)
}

// send delivers later, perhaps never, perhaps twice.
func (w *world) send(open func()) {
	for range 1 + w.rng.IntN(20)/19 {
		if w.rng.Float64() >= w.loss {
			w.mail = append(w.mail, letter{w.now + int64(w.rng.ExpFloat64()*float64(w.delay)), open})
		}
	}
}

func (w *world) spend(key string, units int64) {
	if units > 0 {
		w.spent[key] = append(w.spent[key], spending{w.now, units})
	}
}

const worldStep = int64(10 * time.Millisecond)

func (w *world) run(d time.Duration) {
	for end := w.now + int64(d); w.now < end; w.now += worldStep {
		deliver(&w.mail, w.now)
		for _, n := range w.nodes {
			if n.up {
				w.use(n)
				w.post(n)
			}
		}
		w.tick()
	}
}

// use has callers come to a node.
func (w *world) use(n *worldNode) {
	now := n.local(w.now)
	n.rest += n.demand * float64(worldStep) / 1e9
	units := int64(n.rest)
	n.rest -= float64(units)
	w.wanted[n.share.Key] += units
	w.spend(n.share.Key, n.Offer(now, n.share, units, 1+units/100))
	w.spend(n.small, int64(n.Admitted()))
	if n.callRest += n.calls * float64(worldStep) / 1e9; n.callRest < 1 {
		return
	}
	n.callRest--
	if n.ByToken(n.small) {
		if _, ok := n.Want(now, n.small, 1, 8*time.Second); ok {
			w.spend(n.small, 1)
		}
	} else {
		n.unknown.Share.Offer(now, 1, 1, true)
	}
	for _, s := range []struct {
		*fleet.Stash
		key string
	}{{n.day, n.dayKey}, {n.tree, n.treeKey}} {
		if s.Take(now, 1) {
			w.spend(s.key, 1)
		} else {
			n.DrawNow()
		}
	}
}

func (w *world) post(n *worldNode) {
	b := n.Message(n.local(w.now))
	if b == nil {
		return
	}
	e := n.Envoy
	w.send(func() {
		if w.core == nil {
			return
		}
		m, err := fleet.DecodeFromNode(b)
		must(w.t, err)
		w.core.at(w.now, w.wall())
		if !w.core.report(m) {
			h := fleet.Hello{Epoch: w.core.epoch}.Encode()
			w.send(func() { must(w.t, e.Answer(h)) })
		}
	})
}

func (w *world) tick() {
	if w.core == nil {
		return
	}
	w.core.at(w.now, w.wall())
	if w.now < w.core.next() && w.rng.IntN(3) > 0 {
		return
	}
	documents, _ := w.core.tick() // the store may be broken for a while
	for id, b := range documents {
		for _, n := range w.nodes {
			if n.Name == id {
				e := n.Envoy
				w.send(func() { must(w.t, e.Take(n.local(w.now), b)) })
			}
		}
	}
}

// most is the most that any window of a length had of a key.
func (w *world) most(key string, window time.Duration) (most int64) {
	l, sum, from := w.spent[key], int64(0), 0
	for i := range l {
		for sum += l[i].units; l[i].at-l[from].at >= int64(window); from++ {
			sum -= l[from].units
		}
		most = max(most, sum)
	}
	return most
}

func (w *world) sum(key string) (n int64) {
	for _, s := range w.spent[key] {
		n += s.units
	}
	return n
}

// broken says which promise was broken.
func (w *world) broken() string {
	n := w.nodes[0]
	switch {
	case w.most(n.share.Key, time.Minute) > 60_000:
		return "tokens"
	case w.most(n.small, time.Minute) > 10:
		return "requests"
	case w.sum(n.dayKey) > 1000:
		return "day"
	case w.sum(n.treeKey) > 200:
		return "tree"
	}
	return ""
}
