// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// An outage is what callers meet while a peer has no store.
type outage struct {
	statuses  map[int]int   // of callers within their limit; 0: no answer
	slowest   time.Duration // of them
	let       int           // tokens that came through to a tenant that had used up its limit when the store went
	firstOpen time.Duration // when the first of these came after the stop
	recovered time.Duration // after the store was back: the first of the answers that stay right
	probes    int
}

// outages stops each peer's store for a while, all at the same time.
func (b *bench) outages(ctx context.Context) error {
	before, away, after := 2*time.Second, 20*time.Second, 40*time.Second
	if b.short {
		before, away, after = 300*time.Millisecond, time.Second, 500*time.Millisecond
	}
	var peers []*peer
	var stores []*process
	for _, p := range b.peers {
		if p.store != nil {
			peers = append(peers, p)
			if !slices.Contains(stores, p.store) {
				stores = append(stores, p.store)
			}
		}
	}
	for k, p := range peers {
		exhaust(ctx, p, k)
	}
	stop, back := time.Now().Add(before), time.Now().Add(before+away)
	outages := make([]*outage, len(peers))
	var running sync.WaitGroup
	for k, p := range peers {
		outages[k] = &outage{statuses: map[int]int{}}
		running.Go(func() { b.probe(ctx, p, outages[k], k, stop, back, back.Add(after)) })
	}
	time.Sleep(time.Until(stop))
	for _, s := range stores {
		if err := s.stop(); err != nil {
			return err
		}
	}
	time.Sleep(time.Until(back))
	for _, s := range stores {
		if err := s.start(); err != nil {
			return err
		}
	}
	running.Wait()
	b.report.outages(peers, outages, away)
	return ctx.Err()
}

// usedUp is a tenant whose limit is used up.
var usedUp = tenants[len(tenants)-1]

func usedUpBody(order int) []byte {
	return chat(script{tag: fmt.Sprintf("outage-%d", order), prompt: 100, completion: 400}, 400, false, "hello")
}

// exhaust uses up a limit.
func exhaust(ctx context.Context, p *peer, order int) {
	client := newClient(1)
	defer client.CloseIdleConnections()
	for range 60 {
		_, _ = send(ctx, client, p.addr, call{usedUp, usedUpBody(order)})
	}
}

// probe asks three times a second for a tenant that needs a fifth of its limit, and for one that has used it up.
func (b *bench) probe(ctx context.Context, p *peer, o *outage, order int, stop, back, end time.Time) {
	client := newClient(64)
	client.Timeout = 10 * time.Second
	defer client.CloseIdleConnections()
	within, above := chat(script{tag: "perf", prompt: 50, completion: 50}, 50, false, "hello"), usedUpBody(order)
	var mu sync.Mutex
	var calls sync.WaitGroup
	ask := func() {
		sent := time.Now()
		a, _ := send(ctx, client, p.addr, call{"within", within})
		took := time.Since(sent)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case sent.After(back):
			if a.status != http.StatusOK || took > 250*time.Millisecond {
				o.recovered = max(o.recovered, sent.Add(took).Sub(back))
			}
		case sent.After(stop):
			o.statuses[a.status]++
			o.probes++
			o.slowest = max(o.slowest, took)
		}
	}
	for time.Now().Before(end) && ctx.Err() == nil {
		calls.Go(ask)
		calls.Go(func() { _, _ = send(ctx, client, p.addr, call{usedUp, above}) })
		time.Sleep(time.Second / 3)
	}
	calls.Wait()
	entries, _ := b.ledger(fmt.Sprintf("outage-%d", order))
	for _, e := range entries {
		if e.At > stop.UnixMilli() && e.At < back.UnixMilli() {
			if o.let += e.Tokens; o.firstOpen == 0 {
				o.firstOpen = time.UnixMilli(e.At).Sub(stop)
			}
		}
	}
}

// changes takes from tenant change nearly all of its limit, and waits for the first refusal, several times.
func (b *bench) changes(ctx context.Context) error {
	body := chat(script{tag: "perf", prompt: 10, completion: 10}, 10, false, "hello")
	rounds := map[bool]int{false: 5, true: 1}[b.short]
	peers := b.limited()
	times := make([][]time.Duration, len(peers))
	for k, p := range peers {
		for range rounds {
			if p.change == nil {
				break
			}
			for _, to := range []int{1, unlimited} {
				took, err := b.await(ctx, p, body, to)
				if err != nil {
					return err
				}
				if to == 1 {
					times[k] = append(times[k], took)
				}
			}
		}
	}
	b.report.changes(peers, times)
	return nil
}

// await changes the limit, and asks on new connections, as an Envoy keeps those it has with the listener it had.
func (b *bench) await(ctx context.Context, p *peer, body []byte, to int) (time.Duration, error) {
	if err := p.change(to); err != nil {
		return 0, err
	}
	at := time.Now()
	var a answer
	var err error
	for time.Since(at) < 90*time.Second && ctx.Err() == nil {
		client := newClient(1)
		a, err = send(ctx, client, p.addr, call{"change", body})
		client.CloseIdleConnections()
		if err == nil && (a.status == http.StatusOK) == (to == unlimited) {
			return time.Since(at), nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0, fmt.Errorf("%s does not take the limit %d: it answers %d, %v", p.name, to, a.status, err)
}

// estimates asks the repository's report for how far estimates are from what real tokenizers count.
func (b *bench) estimates(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./internal/tokensreport", "policy/tokens/testdata/texts.jsonl")
	cmd.Dir = filepath.Clean(b.root)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("tokensreport: %w", err)
	}
	_, table, _ := strings.Cut(string(out), "\nall kinds")
	table, _, _ = strings.Cut(table, "\nEnglish")
	columns := regexp.MustCompile(`\s{2,}`)
	var rows [][]string
	for _, line := range strings.Split(table, "\n")[1:] {
		if f := columns.Split(strings.TrimSpace(line), -1); len(f) >= 4 {
			rows = append(rows, f[:4])
		}
	}
	b.report.estimates(rows)
	return nil
}
