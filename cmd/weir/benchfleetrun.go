// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weirproxy/weir/controlplane/fleet/fleettest"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
	"github.com/weirproxy/weir/policyfile"
)

// A benchNode is one Envoy of the benchmark.
type benchNode struct {
	*fleettest.Client
	tokens *fleettest.Share
	others []*fleettest.Share

	mu      sync.Mutex
	before  int64     // rate before the cut; 0: no cut is measured
	applied int64     // when the cut was in force, by the node's clock; 0: not yet
	acked   time.Time // when the control plane has heard so

	posts, failed int // reports since the first cut, and those without an answer, or with one that is an error
}

// measure runs all Envoys and takes the figures.
func (b *fleetBench) measure(ctx context.Context) error {
	r, err := policyfile.Parse(b.file, b.policy)
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: b.Nodes, IdleConnTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() { cancel(); running.Wait() }()
	nodes := make([]*benchNode, b.Nodes)
	for i := range nodes {
		nodes[i] = b.node(i, r.Policy, &http.Client{Transport: transport})
		running.Go(func() { nodes[i].Run(ctx) })
		time.Sleep(2 * time.Millisecond) // not all at once
	}
	started := time.Now()
	if err := b.settle(ctx, nodes); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "%d Envoys have their share %v after the last one has started.\n\n", b.Nodes, time.Since(started).Round(100*time.Millisecond))
	if err := b.steady(ctx); err != nil {
		return err
	}
	return b.cuts(ctx, nodes)
}

// node makes an Envoy that wants twice its share of what all have, and a little for each tenant.
func (b *fleetBench) node(i int, p *policy.Policy, client *http.Client) *benchNode {
	e := fleettest.New(fmt.Sprintf("node-%04d", i), 1, fleet.DefaultParams())
	n := &benchNode{Client: fleettest.NewClient(e)}
	n.XDS, n.Control, n.HTTP, n.Every = b.xds, b.status, client, 100*time.Millisecond
	for _, entry := range p.Entries() {
		for m := range entry.Limit.Meters {
			meter := &entry.Limit.Meters[m]
			name := fleet.Name{
				Tier: entry.Tier, Dimension: meter.Dimension, Key: entry.Key, Window: meter.Window().Milliseconds(),
				Entry: policy.EntryKey(p.Hasher, entry.Tier, entry.Name),
			}
			memory := int64(0)
			if meter.Kind == policy.Sliding {
				memory = fleet.MemoryOf(int64(meter.Window()), int64(p.Fleet.Jitter))
			}
			if entry.Tier == policy.TierTenant {
				for tenant := range b.Tenants {
					name.Key = p.Hasher.Key(policy.TierTenant, fmt.Sprint(i, "/", tenant))
					n.others = append(n.others, e.Share(n.Now(), name.String(), int64(meter.Window()), memory))
				}
				continue
			}
			s := e.Share(n.Now(), name.String(), int64(meter.Window()), memory)
			if meter.Dimension == policy.TPM {
				n.tokens = s
			} else {
				n.others = append(n.others, s)
			}
		}
	}
	n.Tick, n.Taken, n.Posted = n.tick, n.taken, n.posted
	return n
}

func (n *benchNode) tick(now int64, e *fleettest.Envoy) {
	e.Offer(now, n.tokens, 20, 2) // of 10 that are its share in a tenth of a second
	for _, s := range n.others {
		e.Offer(now, s, 2, 2)
	}
}

// taken sees whether the cut is in force.
func (n *benchNode) taken(now int64, _ *fleettest.Envoy) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.before > 0 && n.applied == 0 && n.tokens.Terms(now).Rate <= n.before*3/4 {
		n.applied = now
	}
}

// posted sees whether the control plane has heard of the cut. Only a report counts that was made after it was in force.
func (n *benchNode) posted(made int64, status string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.before > 0 {
		if n.posts++; !strings.HasPrefix(status, "2") {
			n.failed++
		}
	}
	if n.applied > 0 && made >= n.applied && n.acked.IsZero() && status == "204 No Content" {
		n.acked = time.Now()
	}
}

// settle waits until all have nearly their share.
func (b *fleetBench) settle(ctx context.Context, nodes []*benchNode) error {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		least := int64(1 << 62)
		for _, n := range nodes {
			n.Do(func(now int64, _ *fleettest.Envoy) { least = min(least, n.tokens.Terms(now).Rate) })
		}
		if least >= 6000*8/10 {
			return nil
		}
	}
	return fmt.Errorf("not all Envoys have come to their share")
}

func (b *fleetBench) steady(ctx context.Context) error {
	from, err := b.usage()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.Steady):
	}
	to, err := b.usage()
	if err != nil {
		return err
	}
	rate := func(of func(fleetUsage) float64) float64 { return perSecond(from, to, of) }
	fmt.Fprintf(b.out, "| without a change | |\n|---|---|\n")
	fmt.Fprintf(b.out, "| cores of the control plane | %.2f |\n", rate(func(u fleetUsage) float64 { return u.cpu }))
	fmt.Fprintf(b.out, "| memory, MiB | %.0f |\n", mib(to.memory))
	fmt.Fprintf(b.out, "| reports per second | %.0f |\n", rate(func(u fleetUsage) float64 { return u.reports }))
	fmt.Fprintf(b.out, "| pushes per second | %.0f |\n", rate(func(u fleetUsage) float64 { return u.pushes }))
	fmt.Fprintf(b.out, "| bytes of shares per second | %.0f |\n\n", rate(func(u fleetUsage) float64 { return u.pushBytes }))
	return nil
}

// cuts halves the quota and restores it, and times each halving at each Envoy.
func (b *fleetBench) cuts(ctx context.Context, nodes []*benchNode) error {
	var written, taken []time.Duration
	late := 0
	for range b.Cuts {
		for _, n := range nodes {
			n.Do(func(now int64, _ *fleettest.Envoy) {
				n.mu.Lock()
				n.before, n.applied, n.acked = n.tokens.Terms(now).Rate, 0, time.Time{}
				n.mu.Unlock()
			})
		}
		at := time.Now()
		if err := b.write(true); err != nil {
			return err
		}
		acked := b.await(ctx, nodes)
		late += len(nodes) - len(acked)
		loaded, err := b.lentBack()
		if err != nil {
			return err
		}
		for _, t := range acked {
			written, taken = append(written, t.Sub(at)), append(taken, t.Sub(loaded))
		}
		if err := b.write(false); err != nil {
			return err
		}
		if err := b.settle(ctx, nodes); err != nil {
			return err
		}
	}
	if len(written) == 0 {
		return fmt.Errorf("no Envoy has acknowledged a cut")
	}
	fmt.Fprintf(b.out, "| a cut by half, acknowledged | p50 | p99 | last | of |\n|---|---|---|---|---|\n")
	b.percentiles("from when the control plane has taken the policy", taken)
	b.percentiles("from when the file was written", written)
	u, err := b.usage()
	fmt.Fprintf(b.out, "\nNot within 15 s: %d of %d. Memory at the end: %.0f MiB.\n", late, b.Cuts*len(nodes), mib(u.memory))
	posts, failed := 0, 0
	for _, n := range nodes {
		n.mu.Lock()
		posts, failed = posts+n.posts, failed+n.failed
		n.mu.Unlock()
	}
	fmt.Fprintf(b.out, "Reports since the first cut without an answer within 2 s, or with an error: %d of %d. If there are any, this machine is too small for so many Envoys.\n", failed, posts)
	return err
}

// lentBack waits until no more than the new limit is lent, which a node that is silent can delay until its lease ends, and says
// when the control plane has taken the policy.
func (b *fleetBench) lentBack() (loaded time.Time, err error) {
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		loaded, quota, err := b.loadedAt()
		if err != nil || quota.Granted <= quota.Limit {
			return loaded, err
		}
		if time.Now().After(end) {
			return loaded, fmt.Errorf("%d of %d are still lent 15 s after a cut", quota.Granted, quota.Limit)
		}
	}
}

// await waits until all have acknowledged, at most 15 s, and says when they did.
func (b *fleetBench) await(ctx context.Context, nodes []*benchNode) (acked []time.Time) {
	for end := time.Now().Add(15 * time.Second); len(acked) < len(nodes) && time.Now().Before(end) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		acked = acked[:0]
		for _, n := range nodes {
			n.mu.Lock()
			if !n.acked.IsZero() {
				acked = append(acked, n.acked)
			}
			n.mu.Unlock()
		}
	}
	return acked
}
