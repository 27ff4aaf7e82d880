// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// batches is into how many parts a latency is cut, whose medians say how far it strays.
const batches = 5

// samples are what one peer's requests took, in the order of the turns.
type samples [][]time.Duration

// A view is one figure of an answer, or several.
type view struct {
	title string
	of    func(answer) []time.Duration
}

// latency asks all peers in turn, in another order each time, over one connection each: what another program does to this
// machine then meets all of them.
func (b *bench) latency(ctx context.Context, body []byte, n int, views ...view) error {
	client := newClient(1)
	defer client.CloseIdleConnections()
	all := make([][]samples, len(views))
	for v := range views {
		all[v] = make([]samples, len(b.peers))
	}
	part := (n + batches - 1) / batches
	const warmUp = 5
	for i := range batches * (part + warmUp) {
		turn := i % (part + warmUp)
		if turn == 0 {
			client.CloseIdleConnections() // each part has connections of its own, perhaps to other workers
		}
		for _, k := range rand.Perm(len(b.peers)) {
			a, err := sendOK(ctx, client, b.peers[k].addr, call{"perf", body})
			if err != nil {
				return fmt.Errorf("%s: %w", b.peers[k].name, err)
			}
			for v := range views {
				if turn >= warmUp {
					all[v][k] = append(all[v][k], views[v].of(a))
				}
			}
		}
	}
	for v := range views {
		b.report.latency(views[v].title, b.peers, all[v])
	}
	return nil
}

// alone gives each peer n requests in its turn, over one connection, and a tenth more before them: what a peer takes that has the machine, and
// its caches, to itself.
func (b *bench) alone(ctx context.Context, body []byte, n int) error {
	all := make([]samples, len(b.peers))
	for range batches {
		for k, p := range b.peers {
			client := newClient(1)
			for i := range n + n/10 {
				a, err := sendOK(ctx, client, p.addr, call{"perf", body})
				if err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				if i >= n/10 {
					all[k] = append(all[k], []time.Duration{a.total})
				}
			}
			client.CloseIdleConnections()
		}
	}
	b.report.latency(fmt.Sprintf("a chat of 2 KB, %d of one peer after another", n), b.peers, all)
	return nil
}

func (b *bench) latencies(ctx context.Context) error {
	n := map[bool]int{false: 700, true: 10}[b.short]
	s := script{tag: "perf", prompt: 100, completion: 100}
	total := func(a answer) []time.Duration { return []time.Duration{a.total} }
	for _, kb := range []int{2, 32, 256} {
		if err := b.latency(ctx, chat(s, 100, false, prose(kb<<10)), max(n/max(kb/64, 1), 10), view{fmt.Sprintf("a chat of %d KB", kb), total}); err != nil {
			return err
		}
	}
	if err := b.alone(ctx, chat(s, 100, false, prose(2<<10)), max(n/2, 10)); err != nil {
		return err
	}
	s.chunks, s.gap = 10, 2*time.Millisecond
	return b.latency(ctx, chat(s, 100, true, prose(2<<10)), max(n/4, 10),
		view{"a stream's first byte, 2 KB", func(a answer) []time.Duration { return []time.Duration{a.first} }},
		view{"each chunk of a stream, from the provider to the client", func(a answer) []time.Duration { return a.chunks }})
}

// quantile takes it of samples, one after another.
func quantile(s samples, q float64) time.Duration {
	flat := slices.Sorted(slices.Values(slices.Concat(s...)))
	return flat[min(int(float64(len(flat))*q), len(flat)-1)]
}

// batch is the i-th part of samples.
func (s samples) batch(i int) samples { return s[i*len(s)/batches : (i+1)*len(s)/batches] }

// A load is what one peer did in a round.
type load struct {
	perSecond, cpu float64 // requests; µs of processor time for each
	memory         int64
	p99            time.Duration
}

func (b *bench) throughput(ctx context.Context) error {
	rounds, length := 5, 2*time.Second
	if b.short {
		rounds, length = 1, 100*time.Millisecond
	}
	loads, err := b.turns(ctx, rounds, length, length/10) // some go on working after they have answered
	if err == nil {
		b.report.throughput(b.peers, loads)
	}
	return err
}

// turns gives each peer its rounds, in turn, and a rest after each.
func (b *bench) turns(ctx context.Context, rounds int, length, rest time.Duration) ([][]load, error) {
	body := usualChat()
	loads := make([][]load, len(b.peers))
	for range rounds {
		for k, p := range b.peers {
			l, err := round(ctx, p, body, 32, length)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			loads[k] = append(loads[k], l)
			time.Sleep(rest)
		}
	}
	return loads, nil
}

func round(ctx context.Context, p *peer, body []byte, connections int, length time.Duration) (l load, err error) {
	client := newClient(connections)
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var all sync.WaitGroup
	var times samples
	before, started := usageOf(p.parts), time.Now()
	for range connections {
		all.Go(func() {
			var mine []time.Duration
			var failed error
			for failed == nil && time.Since(started) < length {
				var a answer
				a, failed = sendOK(ctx, client, p.addr, call{"perf", body})
				mine = append(mine, a.total)
			}
			mu.Lock()
			defer mu.Unlock()
			times, err = append(times, mine), cmp.Or(err, failed)
		})
	}
	all.Wait()
	took, after := time.Since(started), usageOf(p.parts)
	n := float64(len(slices.Concat(times...)))
	return load{n / took.Seconds(), float64((after.cpu - before.cpu).Microseconds()) / n, after.memory, quantile(times, 0.99)}, err
}
