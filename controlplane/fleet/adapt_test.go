// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// bench is a world without nodes of its own, in which a test says what nodes say.
type bench struct {
	*world
	key    string
	number uint64
}

func newBench(t *testing.T, change func(*policy.Spec)) *bench {
	b := &bench{world: newWorld(t, 1, 0)}
	if change != nil {
		b.change(change)
	}
	n, _ := nameOf(b.policy, policy.TierProvider, "p/m", 0, policy.TPM, b.wall())
	b.key = n.String()
	return b
}

func (b *bench) change(f func(*policy.Spec)) {
	f(b.spec)
	b.policy = compile(b.t, b.spec)
	b.core.at(b.now, b.wall())
	b.core.setPolicy(b.policy, b.spec)
}

// say has a node say something now, and gives the document that it has then.
func (b *bench) say(m fleet.FromNode) *fleet.ToNode {
	b.t.Helper()
	b.number++
	m.Node, m.Number = "n", b.number
	m.Incarnation = max(m.Incarnation, 1)
	if m.Report != nil {
		m.Report.Node, m.Report.Incarnation, m.Report.Number, m.Report.Epoch = "n", m.Incarnation, b.number, b.core.epoch
	}
	d, err := fleet.DecodeFromNode(m.Encode())
	must(b.t, err)
	b.core.at(b.now, b.wall())
	b.core.report(d)
	b.run(100 * time.Millisecond)
	b.core.at(b.now, b.wall())
	_, err = b.core.tick()
	must(b.t, err)
	to, err := fleet.DecodeToNode(b.core.nodes["n"].sent)
	must(b.t, err)
	return to
}

func (b *bench) hold(demand int64) *fleet.Report {
	return &fleet.Report{Holdings: []fleet.Holding{{Key: b.key, Demand: demand}}}
}

func (b *bench) limit() int64 {
	b.t.Helper()
	for _, q := range b.core.status(0).Quotas {
		if q.Quota == "provider p/m" {
			return q.Limit
		}
	}
	b.t.Fatal("no such quota")
	return 0
}

// A rejection takes the rate down once, however many tell of it, and the nodes learn the new epoch; what was admitted under the
// old one counts no more. It comes back by the time without a rejection, and outlives the controller.
func TestRejectionsTakeTheRateDown(t *testing.T) {
	b := newBench(t, nil)
	b.run(20 * time.Second) // past the cool-down that a controller begins with
	b.say(fleet.FromNode{Report: b.hold(60_000)})
	rejected := fleet.Seen{Key: b.key, Answered: 10, Rejected: 1, Sent: 1000}
	to := b.say(fleet.FromNode{Seen: []fleet.Seen{rejected}, Report: b.hold(60_000)})
	if b.limit() != 42_000 || len(to.Rates) != 1 || to.Rates[0] != (fleet.Rate{Key: b.key, Epoch: 1, Share: 700_000}) {
		t.Fatalf("limit %d, told %+v", b.limit(), to.Rates)
	}
	if g := to.Shares.Grants; len(g) != 1 || g[0].Rate > 42_000 {
		t.Errorf("granted %+v", g)
	}
	b.run(12 * time.Second)
	b.say(fleet.FromNode{Seen: []fleet.Seen{rejected}})
	if b.limit() != 42_000 {
		t.Errorf("what was admitted before the cut has cut again: %d", b.limit())
	}
	rejected.Epoch = 1
	b.say(fleet.FromNode{Seen: []fleet.Seen{rejected}})
	if b.limit() != 29_400 {
		t.Errorf("limit %d after the second cut", b.limit())
	}
	for range 40 { // used up, without a rejection
		b.run(time.Second)
		b.say(fleet.FromNode{Seen: []fleet.Seen{{Key: b.key, Epoch: 2, Answered: 5, Sent: 600}}, Report: b.hold(60_000)})
	}
	if b.limit() != 32_400 {
		t.Errorf("limit %d after 40 s without a rejection", b.limit())
	}
	changes := b.core.status(0).Changes
	if len(changes) != 3 || changes[0].Reason != "rejected" || changes[0].To != 0.7 || changes[2].Reason != "no_rejection" {
		t.Errorf("noted %+v", changes)
	}
	b.start()
	b.say(fleet.FromNode{Report: b.hold(1)})
	if b.limit() != 32_400 {
		t.Errorf("limit %d after the controller has started again", b.limit())
	}
}

func TestAdaptOff(t *testing.T) {
	b := newBench(t, func(s *policy.Spec) {
		p := s.Providers["p"]
		p.Adapt.Off = true
		s.Providers["p"] = p
	})
	b.run(20 * time.Second)
	b.say(fleet.FromNode{Seen: []fleet.Seen{{Key: b.key, Answered: 10, Rejected: 9}}, Report: b.hold(60_000)})
	if b.limit() != 60_000 || len(b.core.status(0).Changes) > 0 {
		t.Errorf("limit %d, changes %+v", b.limit(), b.core.status(0).Changes)
	}
}

// A rate climbs no faster than its ramp lets it: from what is allowed always, by half of what was sent a window ago.
func TestRamp(t *testing.T) {
	b := newBench(t, func(s *policy.Spec) {
		p := s.Providers["p"]
		p.Ramp = policy.RampSpec{Above: 10_000, Growth: policy.Growth{Share: policy.Whole / 2, Per: policy.Duration(time.Minute)}}
		s.Providers["p"] = p
	})
	b.say(fleet.FromNode{Report: b.hold(60_000)})
	if b.limit() != 10_000 {
		t.Fatalf("began with %d", b.limit())
	}
	for range 150 {
		b.run(time.Second)
		b.say(fleet.FromNode{Seen: []fleet.Seen{{Key: b.key, Answered: 1, Sent: 180}}, Report: b.hold(60_000)})
	}
	if l := b.limit(); l <= 10_000 || l > 16_500 {
		t.Errorf("%d after two minutes at 9,900 a minute", l)
	}
}

// What a provider tells of its limit is there to see; weir does not believe it over the policy.
func TestLearnedLimits(t *testing.T) {
	b := newBench(t, nil)
	b.say(fleet.FromNode{Report: b.hold(1), Learned: []fleet.Learned{{Key: b.key, Limit: 90_000, External: 5}}})
	q := b.core.status(0).Quotas[0]
	if q.Learned == nil || q.Learned.Limit != 90_000 || q.Learned.Node != "n" || q.Limit != 60_000 {
		t.Errorf("got %+v with %+v", q, q.Learned)
	}
}

// A message that comes twice counts once, in whatever order messages come.
func TestMessagesCountOnce(t *testing.T) {
	b := newBench(t, nil)
	m := fleet.FromNode{Node: "n", Incarnation: 1, Number: 7, Seen: []fleet.Seen{{Key: b.key, Denied: 5}}}
	for _, number := range []uint64{7, 7, 5, 7, 5, 100, 7, 99, 99} {
		m.Number = number
		b.core.report(&m)
	}
	if d := b.core.quotas[b.key].denied; d != 4*5 {
		t.Errorf("%d denied, want those of 7, 5, 100 and 99", d)
	}
	m.Incarnation, m.Number = 2, 7
	b.core.report(&m)
	m.Incarnation, m.Number = 1, 8 // of the life before
	b.core.report(&m)
	if d := b.core.quotas[b.key].denied; d != 5*5 {
		t.Errorf("%d denied after another life", d)
	}
}

// What a node has not acknowledged is said again with whatever comes next; what it has is not.
func TestDocumentKeepsWhatIsNotAcknowledged(t *testing.T) {
	b := newBench(t, nil)
	first := b.say(fleet.FromNode{Report: b.hold(100)})
	if len(first.Shares.Grants) != 1 {
		t.Fatalf("got %+v", first)
	}
	tree, _ := nameOf(b.policy, policy.TierTree, "default", 5, policy.TreeCalls, b.wall())
	second := b.say(fleet.FromNode{Draws: []fleet.Draw{{Key: tree.String(), Number: 1, Want: 1}}})
	if len(second.Shares.Grants) != 1 || second.Shares.Grants[0] != first.Shares.Grants[0] || len(second.Chunks) != 1 || second.Chunks[0].Given < 1 {
		t.Errorf("got %+v", second)
	}
	b.say(fleet.FromNode{Report: &fleet.Report{AckOnly: true, Holdings: []fleet.Holding{{Key: b.key, Version: first.Shares.Grants[0].Version, Rate: 1}}}})
	third := b.say(fleet.FromNode{Draws: []fleet.Draw{{Key: tree.String(), Number: 2, Given: 1, Used: 1, Want: 100}}})
	if len(third.Shares.Grants) != 0 {
		t.Errorf("said again: %+v", third.Shares.Grants)
	}
	if life := b.say(fleet.FromNode{Incarnation: 2, Report: b.hold(1)}); len(life.Chunks) > 0 || life.Shares.Incarnation != 2 {
		t.Errorf("another life hears of what the first one had: %+v", life)
	}
}

// A quota that the policy does not share is not granted, whatever a node says; nor is one of its own entry to a key that has one.
func TestOnlyWhatThePolicyShares(t *testing.T) {
	b := newBench(t, func(s *policy.Spec) {
		s.Limits.Tenant["acme"] = &policy.LimitSpec{TPM: count(10)}
		s.Limits.Tenant["local"] = &policy.LimitSpec{TPM: count(10), Scope: "node"}
		s.Limits.Tenant["big"] = &policy.LimitSpec{TPM: count(1_000_000)}
	})
	name := func(entry string, key policy.Key) fleet.Name {
		return fleet.Name{
			Tier: policy.TierTenant, Dimension: policy.TPM, Key: key, Entry: policy.EntryKey(b.policy.Hasher, policy.TierTenant, entry), Window: 60_000,
		}
	}
	acme, local := b.policy.Hasher.Key(policy.TierTenant, "acme"), b.policy.Hasher.Key(policy.TierTenant, "local")
	for what, c := range map[string]struct {
		name fleet.Name
		want int64
	}{
		"its own entry":        {name("acme", acme), 10},
		"another's":            {name("big", acme), 10},
		"one of a node":        {name("local", local), 0},
		"a meter that is not":  {fleet.Name{Tier: policy.TierTenant, Dimension: policy.TPH, Key: acme, Window: 3_600_000}, 0},
		"another window":       {fleet.Name{Tier: policy.TierTenant, Dimension: policy.TPM, Key: acme, Window: 1000}, 0},
		"an entry that is not": {name("nobody", 9), 0},
	} {
		q := b.core.quota(c.name.String())
		got := int64(0)
		if q != nil {
			got = q.shared.Limit
			b.core.drop(q.key, q)
		}
		if got != c.want {
			t.Errorf("%s: a limit of %d, want %d", what, got, c.want)
		}
	}
}

// A limit that changes applies to what is out; one that goes away is taken back; one of another window begins when the old one
// is over.
func TestPolicyChanges(t *testing.T) {
	b := newBench(t, nil)
	b.nodes = nil
	b.say(fleet.FromNode{Report: b.hold(60_000)})
	set := func(l *policy.LimitSpec) {
		b.change(func(s *policy.Spec) { s.Providers["p"].Models["m"] = l })
	}
	grant := func() fleet.Grant {
		q := b.core.quotas[b.key]
		h := fleet.Holding{Key: b.key, Demand: 60_000}
		if g, ok := b.core.nodes["n"].grants[b.key]; ok {
			h.Version, h.Rate, h.Cap = g.Version, g.Rate, g.Cap
		}
		to := b.say(fleet.FromNode{Report: &fleet.Report{Holdings: []fleet.Holding{h}}})
		if q == nil || len(to.Shares.Grants) == 0 {
			return fleet.Grant{}
		}
		return to.Shares.Grants[0]
	}
	if g := grant(); g.Rate < 50_000 {
		t.Fatalf("granted %+v", g)
	}
	set(&policy.LimitSpec{TPM: count(30_000)})
	if g := grant(); g.Rate > 30_000 || g.Cap > 30_000 {
		t.Errorf("after a cut: %+v", g)
	}
	set(&policy.LimitSpec{TPM: count(90_000)})
	grant()
	if g := grant(); g.Rate < 70_000 {
		t.Errorf("after a raise: %+v", g)
	}
	window := policy.Window{Length: policy.Duration(10 * time.Second)}
	set(&policy.LimitSpec{TPM: count(90_000), Window: &window})
	if g := grant(); g.Rate != 0 || g.Burst != 0 || g.Floor != 0 {
		t.Errorf("after a change of window the old one: %+v", g)
	}
	other, _ := nameOf(b.policy, policy.TierProvider, "p/m", 0, policy.TPM, b.wall())
	if q := b.core.quota(other.String()); q != nil {
		t.Error("the new window is lent while the old one is remembered")
	}
	b.run(3 * time.Hour)
	if q := b.core.quota(other.String()); q == nil || q.ledger == nil {
		t.Error("the new window is not lent when the old one is over")
	}
}

// A day's limit that is raised, taken out and put back, over a restart too, goes on with what was used of it.
func TestStockOverPolicyChanges(t *testing.T) {
	b := newBench(t, nil)
	day := func(n policy.Count) {
		b.change(func(s *policy.Spec) {
			s.Limits.Tenant = map[string]*policy.LimitSpec{"default": {RPD: count(n), Reset: &policy.Reset{Zone: "UTC"}}}
		})
	}
	name, _ := nameOf(b.policy, policy.TierTenant, "default", 5, policy.RPD, b.wall())
	draws, given := uint64(0), int64(0)
	draw := func(want int64) int64 {
		draws++
		to := b.say(fleet.FromNode{Draws: []fleet.Draw{{Key: name.String(), Number: draws, Given: given, Used: given, Want: want}}})
		if len(to.Chunks) == 1 {
			given = to.Chunks[0].Given
		}
		return given
	}
	if got := draw(900); got != 900 {
		t.Fatalf("given %d of 1000", got)
	}
	day(2000)
	b.change(func(s *policy.Spec) { s.Limits.Tenant = nil })
	draw(100)
	b.run(5 * time.Minute)
	day(2000)
	if got := draw(600); got != 1500 {
		t.Errorf("given %d in all after a raise, want 1500", got)
	}
	b.start()
	if got := draw(1000); got > 2000 || got < 1950 {
		t.Errorf("given %d in all of 2000 after a restart", got)
	}
	day(1000)
	if got := draw(10); got > 2000 {
		t.Errorf("given %d more after a cut below what was used", got)
	}
}
