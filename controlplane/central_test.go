// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/controlplane/access"
	"github.com/weirproxy/weir/controlplane/store"
	"github.com/weirproxy/weir/filter/filtertest"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/central"
	"github.com/weirproxy/weir/policyfile"
)

// A listStore is what a store means, in a list: one limit, all of which is there until it is used up.
type listStore struct {
	store.Store
	takes   map[string]*listTake
	settled map[string]bool
	away    bool
}

type listTake struct {
	bucket string
	cost   policy.Cost
	flight bool
}

func (l *listStore) String() string { return "a list" }

func (l *listStore) used(bucket string) (tokens, flight int64) {
	for _, t := range l.takes {
		if t.bucket == bucket {
			tokens += t.cost.In(policy.Tokens)
			if t.flight {
				flight++
			}
		}
	}
	return tokens, flight
}

func (l *listStore) Take(_ context.Context, t *store.Take) (a store.Answer, err error) {
	if l.away {
		return a, store.ErrUnavailable
	}
	if l.settled[t.ID] {
		return store.Answer{Verdict: store.Settled}, nil
	}
	if l.takes[t.ID] != nil {
		return store.Answer{Verdict: store.Admitted}, nil
	}
	item := &t.Items[0]
	tokens, flight := l.used(item.Bucket)
	if flight >= item.InFlight {
		return store.Answer{Denied: store.Refusal{Refused: true, Meter: -1, Wait: time.Second}}, nil
	}
	if limit := item.Meters[0].Limit; tokens+t.Cost.In(policy.Tokens) > limit {
		return store.Answer{Denied: store.Refusal{Refused: true, Wait: time.Hour, Remaining: limit - tokens}}, nil
	}
	l.takes[t.ID] = &listTake{item.Bucket, t.Cost, true}
	return store.Answer{Verdict: store.Admitted}, nil
}

func (l *listStore) Settle(_ context.Context, id string, actual policy.Cost) (bool, error) {
	if l.away {
		return false, store.ErrUnavailable
	}
	if t := l.takes[id]; t != nil && !l.settled[id] {
		t.cost, t.flight = actual, false
	}
	l.settled[id] = true
	return true, nil
}

const fleetCentral = `apiVersion: weir/v1
trust: [all]
fleet: {scope: node, max_envoys: 100_000}
providers: {openai: {upstream: "http://127.0.0.1:1"}}
limits: {tenant: {default: {tpd: 20_000, burst: 100%, in_flight: 6, scope: central}}}
classes: {patient: {priority: 2, on_limit: queue, wait: 3s}, plain: {priority: 1}}
`

// A centralWorld is two Envoys with two workers each, one control plane, and a network that delays.
type centralWorld struct {
	server *Server
	list   *listStore
	envoys []*filtertest.Process
	calls  []*centralCall
}

type centralCall struct {
	*filtertest.Exchange
	tenant           string
	asked, used, end int64 // tokens; end: 0 open, 1 answered, 2 gone
}

func newCentralWorld(t *rapid.T) *centralWorld {
	r, err := policyfile.Parse("policy.yaml", []byte(fleetCentral))
	mustRapid(t, err)
	r, err = r.Shared()
	mustRapid(t, err)
	guard, err := access.New(access.Files{}, nil)
	mustRapid(t, err)
	w := &centralWorld{list: &listStore{takes: map[string]*listTake{}, settled: map[string]bool{}}}
	w.server = &Server{config: Config{Store: w.list, Access: guard}, log: slog.New(slog.DiscardHandler), loaded: &loaded{result: r}}
	for i := range 2 {
		p, err := filtertest.NewProcess(nil, 2)
		mustRapid(t, err)
		p.Node, p.Control = fmt.Sprint("egress-", i), w.answer
		mustRapid(t, p.Configure(r.JSON))
		w.envoys = append(w.envoys, p)
	}
	return w
}

func mustRapid(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func (w *centralWorld) answer(path string, body []byte) (int, []byte) {
	r, rec := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)), httptest.NewRecorder()
	switch path {
	case central.TakePath:
		w.server.serveTake(rec, r)
	case central.SettlePath:
		w.server.serveSettle(rec, r)
	}
	return rec.Code, rec.Body.Bytes()
}

func (w *centralWorld) sleep(d time.Duration) {
	for ; d > 0; d -= 20 * time.Millisecond {
		for _, p := range w.envoys {
			p.Sleep(20 * time.Millisecond)
		}
	}
}

func (w *centralWorld) open(t *rapid.T) {
	c := &centralCall{tenant: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"), asked: rapid.Int64Range(100, 4000).Draw(t, "tokens")}
	c.used = rapid.Int64Range(9, c.asked).Draw(t, "used")
	c.Exchange = rapid.SampledFrom(w.envoys).Draw(t, "envoy").Worker(rapid.IntRange(0, 1).Draw(t, "worker")).Open(filtertest.Request{
		Path: "/openai/v1/chat/completions",
		Headers: [][2]string{
			{"content-type", "application/json"}, {"x-tenant", c.tenant}, {"x-priority", rapid.SampledFrom([]string{"patient", "plain"}).Draw(t, "class")},
		},
		Body: []byte(fmt.Sprintf(`{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"hi"}]}`, c.asked-8)),
	})
	w.calls = append(w.calls, c)
}

func (w *centralWorld) finish(c *centralCall, gone bool) {
	switch {
	case c.end > 0:
	case gone || !c.Sent:
		c.Close()
		c.end = 2
	default:
		c.Answer(200, fmt.Sprintf(`{"usage":{"prompt_tokens":8,"completion_tokens":%d}}`, c.used-8))
		c.end = 1
	}
}

// sent is what has left for the provider, as it counts now, and how many calls of it are open.
func (w *centralWorld) sent(tenant string) (tokens, flight int64) {
	for _, c := range w.calls {
		switch {
		case c.tenant != tenant || !c.Sent:
		case c.end == 0:
			tokens, flight = tokens+c.asked, flight+1
		case c.end == 1:
			tokens += c.used
		}
	}
	return tokens, flight
}

// Whatever is late, lost, asked twice or given up: what two Envoys let through is never more than the limit, in tokens and in
// flight, and in the end the control plane counts just that.
func TestCentralOverTwoEnvoys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newCentralWorld(t)
		check := func() {
			for _, tenant := range []string{"a", "b"} {
				if tokens, flight := w.sent(tenant); tokens > 20_000 || flight > 6 {
					t.Fatalf("tenant %s: %d tokens of 20,000, %d in flight of 6", tenant, tokens, flight)
				}
			}
		}
		for range rapid.IntRange(20, 120).Draw(t, "steps") {
			switch rapid.IntRange(0, 11).Draw(t, "step") {
			case 0, 1, 2, 3:
				w.open(t)
			case 4, 5:
				if len(w.calls) > 0 {
					w.finish(w.calls[rapid.IntRange(0, len(w.calls)-1).Draw(t, "call")], rapid.IntRange(0, 3).Draw(t, "gone") == 0)
				}
			case 6:
				there, back := time.Duration(rapid.IntRange(0, 3000).Draw(t, "there"))*time.Millisecond, time.Duration(rapid.IntRange(0, 3000).Draw(t, "back"))*time.Millisecond
				for _, p := range w.envoys {
					p.Late = func(path string) (time.Duration, time.Duration) {
						if path == central.SettlePath {
							return there / 4, back / 4 // in time
						}
						return there, back
					}
				}
			case 7:
				for _, p := range w.envoys {
					p.Late = nil
				}
			case 8:
				w.list.away = true
				w.sleep(time.Duration(rapid.IntRange(20, 1500).Draw(t, "away")) * time.Millisecond)
				w.list.away = false
			default:
				w.sleep(time.Duration(rapid.IntRange(1, 40).Draw(t, "sleep")) * 20 * time.Millisecond)
			}
			check()
		}
		w.drain(t)
	})
}

// drain ends all calls, and holds what the control plane counts against what was used.
func (w *centralWorld) drain(t *rapid.T) {
	for _, p := range w.envoys {
		p.Late = nil
	}
	w.sleep(5 * time.Second)
	used := int64(0)
	for _, c := range w.calls {
		w.finish(c, false)
		if c.end == 1 {
			used += c.used
		}
	}
	w.sleep(15 * time.Second)
	lost, counted, flight := 0, int64(0), 0
	for _, p := range w.envoys {
		lost += p.Metric("weir_central_settles_total.result.lost")
		if n := p.Metric("weir_panics"); n > 0 {
			t.Fatalf("%d panics: %s", n, strings.Join(p.Logs, "\n"))
		}
	}
	gone := int64(0) // who goes after it was sent is charged by other rules
	for _, c := range w.calls {
		if c.Sent && c.end == 2 {
			gone += c.asked
		}
	}
	for id, take := range w.list.takes {
		counted += take.cost.In(policy.Tokens)
		if take.flight {
			flight++
			t.Logf("%s is open", id)
		}
	}
	if lost > 0 {
		return
	}
	if flight > 0 || counted < used || counted > used+gone {
		t.Fatalf("%d calls are open for ever; %d tokens are counted, %d were used (and up to %d by those that went)", flight, counted, used, gone)
	}
}
