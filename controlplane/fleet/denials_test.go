// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
	"github.com/weirproxy/weir/policyfile"
)

// What is remembered of ten minutes is what came in this minute and the nine before it.
func TestRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r recent
		type event struct{ minute, n int64 }
		var all []event
		now := rapid.Int64Range(1, int64(1000*time.Hour)).Draw(t, "now")
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now += rapid.SampledFrom([]int64{0, int64(time.Second), int64(time.Minute), int64(9 * time.Minute), int64(10 * time.Minute), int64(time.Hour)}).Draw(t, "later")
			n := rapid.Int64Range(0, 9).Draw(t, "n")
			r.add(now, n)
			all = append(all, event{now / int64(time.Minute), n})
			want := int64(0)
			for _, e := range all {
				if e.minute > now/int64(time.Minute)-minutes {
					want += e.n
				}
			}
			if got := r.sum(now); got != want {
				t.Fatalf("%d, want %d of %v", got, want, all)
			}
		}
	})
}

func newDenialCore(t *testing.T, reported bool) (*core, *policy.Policy) {
	t.Helper()
	r, err := policyfile.Parse("p", []byte(`apiVersion: weir/v1
providers: {openai: {upstream: "http://127.0.0.1:1", models: {"*": {tpm: 1000}}}}
limits: {tenant: {acme: {tpm: 100, rpd: 50}, default: {tpm: 10, scope: node}}, tree: {default: {calls: 5}}}
`))
	must(t, err)
	if reported {
		r, err = r.Reported()
	} else {
		r, err = r.Shared()
	}
	must(t, err)
	c, err := newCore(int64(time.Hour), worldWall, &memory{records: map[string][]byte{}}, slog.New(slog.DiscardHandler), func() int { return 1 })
	must(t, err)
	c.setPolicy(r.Policy, r.Spec)
	return c, r.Policy
}

// Denials are shown by whose limit and whose calls they were, by names where the policy has them; a message that comes twice counts
// once; what is over is forgotten; and however many keys there are, the memory is bounded and the sum is right.
func TestDenials(t *testing.T) {
	c, p := newDenialCore(t, false)
	acme := p.Hasher.Key(policy.TierTenant, "acme")
	m := &fleet.FromNode{Node: "n", Incarnation: 1, Number: 1, Denials: []fleet.Denial{
		{Tier: policy.TierTenant, Dimension: policy.TPM, Reason: policy.LimitExceeded, Verdict: policy.Deny, Key: acme, Tenant: acme, Class: "batch", Limit: 100, Calls: 3},
		{Tier: policy.TierTree, Dimension: policy.TreeCalls, Reason: policy.QuotaExhausted, Verdict: policy.Degraded, Key: 77, Tenant: acme, Limit: 5, Calls: 2},
		{Reason: policy.BadPath, Verdict: policy.Deny, Calls: 1},
	}}
	c.report(m)
	c.report(m)
	s := c.status(0)
	want := []Denied{
		{Who: "tenant acme", Tenant: "tenant acme", Tier: "tenant", Dimension: "tpm", Limit: 100, Reason: "limit_exceeded", Decision: "deny", Class: "batch", Recent: 3, Calls: 3, Last: worldWall},
		{Who: "tree #000000000000004d", Tenant: "tenant acme", Tier: "tree", Dimension: "calls", Limit: 5, Reason: "quota_exhausted", Decision: "degrade", Recent: 2, Calls: 2, Last: worldWall},
		{Reason: "bad_path", Decision: "deny", Recent: 1, Calls: 1, Last: worldWall},
	}
	if len(s.Denials) != len(want) || len(s.Reasons) != len(want) {
		t.Fatalf("%+v %+v", s.Denials, s.Reasons)
	}
	for i := range want {
		if s.Denials[i] != want[i] {
			t.Errorf("got  %+v\nwant %+v", s.Denials[i], want[i])
		}
		want[i].Who, want[i].Tenant, want[i].Class, want[i].Limit = "", "", "", 0
		if s.Reasons[i] != want[i] {
			t.Errorf("got  %+v\nwant %+v", s.Reasons[i], want[i])
		}
	}
	if _, found := c.find(policy.TierTree, 77); len(found) != 1 || found[0].Tier != "tree" {
		t.Errorf("of the tree: %+v", found)
	}
	if _, found := c.find(policy.TierTenant, acme); len(found) != 2 { // its own limit's, and the tree's for its calls
		t.Errorf("of the tenant: %+v", found)
	}
	for i := range 2 * maxDenied {
		c.denied(&fleet.Denial{Tier: policy.TierUser, Reason: policy.LimitExceeded, Verdict: policy.Deny, Key: policy.Key(i + 1000), Limit: 1, Calls: 1})
	}
	s = c.status(0)
	if got := s.Reasons[0]; len(c.denials) > maxDenied+1 || got.Recent != 2*maxDenied || got.Tier != "user" || len(s.Denials) != shownDeny {
		t.Errorf("%d kept, %+v, %d shown", len(c.denials), got, len(s.Denials))
	}
	if s.Denials[0].Who != "user of others" {
		t.Errorf("%+v", s.Denials[0])
	}
	c.at(c.now+minutes*int64(time.Minute)+int64(time.Second), worldWall)
	c.sweep()
	if s := c.status(0); len(s.Denials)+len(s.Reasons)+len(c.denials) > 0 {
		t.Errorf("%+v", s.Reasons)
	}
}

// Who waits is added up over nodes, and a node that is gone does not wait for ever.
func TestClassWaits(t *testing.T) {
	c, _ := newDenialCore(t, false)
	tell := func(node string, number uint64, now int64, within int) {
		w := fleet.Waits{Class: "batch", Now: now}
		w.Within[within]++
		c.report(&fleet.FromNode{Node: node, Incarnation: 1, Number: number, Waits: []fleet.Waits{w}})
	}
	tell("a", 1, 2, 0)
	tell("b", 1, 3, 7)
	if w := c.status(0).Waits; len(w) != 1 || w[0].Now != 5 || w[0].Calls != 2 || w[0].Recent[0] != 1 || w[0].Recent[7] != 1 {
		t.Errorf("%+v", w)
	}
	tell("a", 2, 0, 3)
	if w := c.status(0).Waits; w[0].Now != 3 {
		t.Errorf("%+v", w)
	}
	c.at(c.now+int64(c.params.Lease)+1, worldWall)
	if w := c.status(0).Waits; w[0].Now != 0 || w[0].Calls != 3 {
		t.Errorf("%+v", w)
	}
	for i := range 2 * maxClasses {
		c.waits(c.nodes["a"], &fleet.Waits{Class: strings.Repeat("x", i)})
	}
	if len(c.classes) != maxClasses {
		t.Errorf("%d classes", len(c.classes))
	}
}

// Where nothing is shared the controller shows what a node says of each limit, of any scope and kind, and gives it nothing.
func TestWholeLimits(t *testing.T) {
	c, p := newDenialCore(t, true)
	acme, other := p.Hasher.Key(policy.TierTenant, "acme"), p.Hasher.Key(policy.TierTenant, "other")
	entry := policy.EntryKey(p.Hasher, policy.TierTenant, "default")
	tree := policy.EntryKey(p.Hasher, policy.TierTree, "default")
	names := []fleet.Name{
		{Tier: policy.TierTenant, Dimension: policy.TPM, Key: acme, Window: 60_000},
		{Tier: policy.TierTenant, Dimension: policy.TPM, Key: other, Entry: entry, Window: 60_000},
		{Tier: policy.TierTree, Dimension: policy.TreeCalls, Key: 9, Entry: tree, Window: 30 * 60_000},
	}
	m := &fleet.FromNode{Node: "n", Incarnation: 1, Number: 1, Report: &fleet.Report{Node: "n", Incarnation: 1, Epoch: c.epoch}}
	for i, n := range names {
		m.Seen = append(m.Seen, fleet.Seen{Key: n.String(), Whole: true, Used: int64(3 + i)})
	}
	c.report(m)
	documents, err := c.tick()
	must(t, err)
	if len(documents) > 0 {
		t.Errorf("%d documents", len(documents))
	}
	quotas := c.status(0).Quotas
	if len(quotas) != len(names) {
		t.Fatalf("%+v", quotas)
	}
	for _, q := range quotas {
		want := map[string]int64{"tenant acme": 3, "tree default #0000000000000009": 5}[q.Quota]
		if strings.HasPrefix(q.Quota, "tenant default #") {
			want = 4
		}
		if q.Kind != "whole" || q.Used == nil || *q.Used != want || q.Limit != q.Policy || q.Limit == 0 || len(q.Holders) != 1 {
			t.Errorf("%+v", q)
		}
	}
	c.at(c.now+int64(c.params.Lease)+1, worldWall)
	if q := c.status(0).Quotas[0]; q.Used != nil {
		t.Errorf("of a node that is gone: %+v", q)
	}
	c.at(c.now+int64(time.Hour), worldWall)
	c.sweep()
	if len(c.quotas) > 0 {
		t.Errorf("%d quotas are kept", len(c.quotas))
	}
}
