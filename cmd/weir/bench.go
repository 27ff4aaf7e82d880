// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

type benchCmd struct {
	Filter benchFilterCmd `cmd:"" help:"What the filter costs a request, beside no filter and Envoy's own limiter."`
	Tokens benchTokensCmd `cmd:"" help:"What counting tokens takes inside Envoy, by the byte."`
}

type benchFilterCmd struct {
	Requests int           `help:"Requests for each latency." default:"2000"`
	Round    time.Duration `help:"Length of a round of throughput." default:"3s"`
	Rounds   int           `help:"Rounds of throughput, of which the median counts." default:"3"`
}

// Help is shown by weir bench filter --help.
func (benchFilterCmd) Help() string {
	return "All targets run in one go and take turns, so that their ratios mean something; absolute times depend on the machine."
}

func (c *benchFilterCmd) Run(ctx context.Context, s streams) error {
	targets, done, err := benchTargets(ctx, s)
	defer done()
	if err != nil {
		return err
	}
	for _, kb := range []int{2, 32} {
		if err := c.latency(ctx, s, targets, kb); err != nil {
			return err
		}
	}
	for _, connections := range []int{1, 32} {
		for _, kb := range []int{2, 32} {
			if err := c.throughput(ctx, s, targets, connections, kb); err != nil {
				return err
			}
		}
	}
	return nil
}

func benchBody(kb int) string {
	return `{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"` +
		strings.Repeat("what is the weather in Lisbon? ", kb<<10/31) + `"}]}`
}

func benchOnce(ctx context.Context, c *http.Client, addr, tenant, body string) (time.Duration, error) {
	started := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("content-type", "application/json")
	r.Header.Set("x-tenant", tenant)
	r.Header.Set("x-user", "ada")
	resp, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s answered %d: %w", addr, resp.StatusCode, err)
	}
	return time.Since(started), nil
}

// latency asks all targets in turn, in another order each time, over one connection each.
func (c *benchFilterCmd) latency(ctx context.Context, s streams, targets []target, kb int) error {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	body := benchBody(kb)
	times := make([][]time.Duration, len(targets))
	added := make([][]time.Duration, len(targets))
	const warmUp = 100
	for i := range c.Requests + warmUp {
		turn := make([]time.Duration, len(targets))
		for _, k := range rand.Perm(len(targets)) {
			d, err := benchOnce(ctx, client, targets[k].addr, "acme", body)
			if err != nil {
				return err
			}
			turn[k] = d
		}
		for k, d := range turn {
			if i >= warmUp {
				times[k] = append(times[k], d)
				added[k] = append(added[k], d-turn[0])
			}
		}
	}
	fmt.Fprintf(s.out, "\nlatency, %d KB, 1 connection   %8s %8s %10s %8s\n", kb, "p50 µs", "p99 µs", "added p50", "ratio")
	for k, t := range targets {
		p50 := quantile(times[k], 0.5)
		fmt.Fprintf(s.out, "  %-28s %8d %8d %10d %8.2f\n", t.name, p50.Microseconds(), quantile(times[k], 0.99).Microseconds(),
			quantile(added[k], 0.5).Microseconds(), float64(p50)/float64(quantile(times[0], 0.5)))
	}
	return nil
}

func quantile(d []time.Duration, q float64) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[min(int(float64(len(d))*q), len(d)-1)]
}

// throughput gives each target its rounds, in turn.
func (c *benchFilterCmd) throughput(ctx context.Context, s streams, targets []target, connections, kb int) error {
	body := benchBody(kb)
	rates := make([][]float64, len(targets))
	for range c.Rounds {
		for k, t := range targets {
			n, err := benchRound(ctx, t.addr, body, connections, c.Round)
			if err != nil {
				return err
			}
			rates[k] = append(rates[k], float64(n)/c.Round.Seconds())
		}
	}
	fmt.Fprintf(s.out, "\nthroughput, %2d KB, %2d connections %8s %8s   %s\n", kb, connections, "req/s", "ratio", "rounds")
	for k, t := range targets {
		rate := median(rates[k])
		fmt.Fprintf(s.out, "  %-28s %12.0f %8.2f   %.0f\n", t.name, rate, rate/median(rates[0]), rates[k])
	}
	return nil
}

func median(x []float64) float64 {
	return slices.SortedFunc(slices.Values(x), cmp.Compare[float64])[len(x)/2]
}

func benchRound(ctx context.Context, addr, body string, connections int, length time.Duration) (n int, err error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	end := time.Now().Add(length)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			k := 0
			var failed error
			for failed == nil && time.Now().Before(end) {
				_, failed = benchOnce(ctx, client, addr, "acme", body)
				k++
			}
			mu.Lock()
			defer mu.Unlock()
			n += k
			err = cmp.Or(err, failed)
		})
	}
	all.Wait()
	return n, err
}
