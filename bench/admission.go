// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A plan is what callers do to a limit of 10,000 tokens a minute.
type plan struct {
	name, title string
	text        string
	maxTokens   int
	completion  int           // tokens that the answer really has
	times       int           // how many times what the text has the provider counts as input
	bursts      []burst       // requests at once
	every       time.Duration // then one request, until the end
	from, end   time.Duration // in the timetable
	counted     time.Duration // from when on it counts, for what is usable all the time
}

// A burst is n requests at a time of the timetable.
type burst struct {
	at time.Duration
	n  int
}

// An outcome is what came through of one plan to one peer.
type outcome struct {
	second, minute, total int // tokens: in the first second, in the worst 60 s, from counted on
	refusal               answer
}

// dense is text of which, with its script, chars/4 says a tenth: signs that are four tokens each.
var dense = strings.Repeat("𓂀𓃭𓅓𓆣𓇋𓈖𓉐𓊃", 25) + prose(95)

// plans is the timetable, which begins a second after a full minute; peers begin their bursts one after another.
func plans() []plan {
	const s = time.Second
	return []plan{
		{name: "burst", title: "200 at once", maxTokens: 400, completion: 400, bursts: []burst{{0, 200}}, every: s / 5, end: 57 * s},
		{name: "edge", title: "50 before and 50 after a minute's end", maxTokens: 400, completion: 400, bursts: []burst{{0, 1}, {57 * s, 50}, {60 * s, 50}}, end: 61 * s},
		{name: "dense", title: "text ten times denser than chars/4", text: dense, maxTokens: 400, completion: 400, bursts: []burst{{60 * s, 200}}, every: s / 5, from: 60 * s, end: 117 * s},
		{name: "hidden", title: "the provider counts ten times what the text has", times: 10, maxTokens: 400, completion: 400, bursts: []burst{{75 * s, 200}}, every: s / 5, from: 75 * s, end: 117 * s},
		{name: "unused", title: "max_tokens 4000, 200 used", maxTokens: 4000, completion: 200, every: s / 5, from: 60 * s, end: 117 * s, counted: 60 * s},
		{name: "steady", title: "six times the limit, all the time", maxTokens: 400, completion: 400, every: s / 2, from: 0, end: 120 * s, counted: 60 * s},
	}
}

// admission runs the timetable on all peers at once.
func (b *bench) admission(ctx context.Context) error {
	outcomes := make([]map[string]*outcome, len(b.peers))
	all, peers := plans(), b.limited()
	start := time.Now().Truncate(time.Minute).Add(61 * time.Second)
	if b.short { // the same rows, in two seconds
		start = time.Now()
		for i := range all {
			all[i].shorten()
		}
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for k, p := range peers {
		outcomes[k] = map[string]*outcome{}
		for i, pl := range all {
			running.Go(func() {
				o, err := b.follow(ctx, p, pl, k, tenants[i], start)
				mu.Lock()
				defer mu.Unlock()
				if outcomes[k][pl.name] = o; err != nil {
					failed = fmt.Errorf("%s, %s: %w", p.name, pl.name, err)
				}
			})
		}
	}
	running.Wait()
	b.report.admission(peers, all, outcomes[:len(peers)])
	return failed
}

// limited are the peers that limit something.
func (b *bench) limited() (peers []*peer) {
	for _, p := range b.peers {
		if p.name != "direct" && !strings.HasPrefix(p.name, "plain Envoy") {
			peers = append(peers, p)
		}
	}
	return peers
}

func (p *plan) shorten() {
	for i := range p.bursts {
		p.bursts[i] = burst{p.bursts[i].at / 60, min(p.bursts[i].n, 25)}
	}
	p.from, p.end, p.counted = p.from/60, p.end/60, p.counted/60
}

// follow does what the plan says to one peer.
func (b *bench) follow(ctx context.Context, p *peer, pl plan, order int, tenant string, start time.Time) (*outcome, error) {
	client := newClient(300)
	defer client.CloseIdleConnections()
	tag := fmt.Sprintf("%s-%d", pl.name, order)
	body, err := b.planBody(pl, tag)
	if err != nil {
		return nil, err
	}
	o := &outcome{}
	var calls sync.WaitGroup
	var mu sync.Mutex
	ask := func() {
		a, err := send(ctx, client, p.addr, call{tenant, body})
		mu.Lock()
		defer mu.Unlock()
		if err == nil && a.status != http.StatusOK {
			o.refusal = a
		}
	}
	stagger := time.Duration(0)
	if len(pl.bursts) == 1 && !b.short { // so that one peer's burst does not slow down another's
		stagger = time.Duration(order) * 1500 * time.Millisecond
	}
	for _, bu := range pl.bursts {
		time.Sleep(time.Until(start.Add(bu.at + stagger)))
		for range bu.n {
			calls.Go(ask)
		}
	}
	time.Sleep(time.Until(start.Add(pl.from)))
	if pl.every > 0 {
		for time.Since(start) < pl.end && ctx.Err() == nil {
			calls.Go(ask)
			time.Sleep(pl.every)
		}
	}
	calls.Wait()
	entries, err := b.ledger(tag)
	o.count(entries, start.Add(pl.counted))
	return o, err
}

// planBody has as its script what it really costs, which nobody knows before its text is there.
func (b *bench) planBody(pl plan, tag string) ([]byte, error) {
	text := pl.text
	if text == "" {
		text = prose(320)
	}
	s := script{tag: tag, prompt: 1000, completion: pl.completion, delay: 300 * time.Millisecond}
	input, err := b.inputTokens(chat(s, pl.maxTokens, false, text))
	s.prompt = input * max(pl.times, 1)
	return chat(s, pl.maxTokens, false, text), err
}

func (o *outcome) count(entries []entry, from time.Time) {
	slices.SortFunc(entries, func(a, b entry) int { return int(a.At - b.At) })
	for i, first := range entries {
		minute := 0
		for _, e := range entries[i:] {
			if e.At < first.At+60_000 {
				minute += e.Tokens
			}
			if i == 0 && e.At < first.At+1000 {
				o.second += e.Tokens
			}
		}
		o.minute = max(o.minute, minute)
		if first.At >= from.UnixMilli() {
			o.total += first.Tokens
		}
	}
}
