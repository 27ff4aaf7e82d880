// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

type canaryCmd struct {
	URL     string        `arg:"" help:"Where the calls go: an API at weir's address, such as http://127.0.0.1:10000/openai/v1/chat/completions." placeholder:"URL"`
	Model   string        `help:"Model of the calls." default:"gpt-4o-mini"`
	Body    string        `help:"A file with the body, in place of a chat of one word." placeholder:"FILE"`
	Tenant  string        `help:"Who it is." default:"weir-canary"`
	User    string        `help:"Who it is." default:"weir-canary"`
	Header  []string      `short:"H" sep:"none" help:"One more header of the calls, such as 'x-priority: batch'; the provider's key is taken from WEIR_CANARY_KEY." placeholder:"'K: V'"`
	Every   time.Duration `help:"How often it runs." default:"10s"`
	Calls   int           `help:"Calls of a run, one after the other, in one request tree." default:"2"`
	Slow    time.Duration `help:"A wait that is an alarm: what x-weir-queued says, or else the time until the answer begins." default:"5s"`
	Confirm int           `help:"How many runs in a row must find the same before it is a shift." default:"2"`
	Count   int           `help:"End after so many runs; 0: never."`
	Metrics string        `help:"Address for /metrics." placeholder:"ADDRESS"`
	JSON    bool          `name:"json" help:"Print each run as a line of JSON."`
}

// Help is shown by weir canary --help.
func (canaryCmd) Help() string {
	return "A synthetic agent: it runs a small workflow at an interval, under a user of its own, and says when what it meets shifts: it begins to be denied, degraded, to wait or to fail, or is well again. Give its user limits of its own in the policy, so that it uses little and meets what others meet.\n\n" +
		"Exit code 1: with --count, if the last state is not well, or a shift away from it was seen.\n\n" +
		"Examples:\n\n  weir canary http://127.0.0.1:10000/openai/v1/chat/completions\n  weir canary http://127.0.0.1:10000/openai/v1/chat/completions --every 2s --count 5 --json"
}

// A finding is what a run has met: that of its worst call.
type finding struct {
	At     time.Time `json:"at"`
	State  string    `json:"state"` // ok, slow, degraded, denied, failed
	Status int       `json:"status,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Tier   string    `json:"tier,omitempty"`
	WaitS  float64   `json:"wait_s"`
	Detail string    `json:"detail,omitempty"`
	Shift  bool      `json:"shift"` // what it meets has changed
}

// what is what makes two findings the same.
func (f *finding) what() string {
	return strings.TrimSpace(strings.Join([]string{f.State, f.Tier, f.Reason}, " "))
}

// severity orders states.
var severity = map[string]int{"ok": 0, "slow": 1, "degraded": 2, "denied": 3, "failed": 4}

func (c *canaryCmd) Run(ctx context.Context, s streams) error {
	a, err := c.agent()
	if err != nil {
		return err
	}
	if c.Metrics != "" {
		if err := requireLoopback(c.Metrics); err != nil {
			return err
		}
		l, err := listen(c.Metrics, "--metrics")
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
		go func() { _ = serveUntil(ctx, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, l) }()
	}
	p, alarms := newPaint(s.out), 0
	for n := 1; ; n++ {
		f := a.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if f.Shift && f.State != "ok" {
			alarms++
		}
		if err := c.tell(s, p, &f, a.state); err != nil {
			return err
		}
		if n == c.Count {
			if alarms > 0 || a.state != "ok" {
				return errRefused
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.Every):
		}
	}
}

// tell prints a run, or only its shift.
func (c *canaryCmd) tell(s streams, p paint, f *finding, state string) error {
	if c.JSON {
		return json.NewEncoder(s.out).Encode(f)
	}
	if !f.Shift {
		return nil
	}
	word := p.green(state)
	if f.State != "ok" {
		word = p.red("ALARM " + state)
	}
	_, err := fmt.Fprintf(s.out, "%s %s, waited %.2fs %s\n", f.At.Format(time.RFC3339), word, f.WaitS, f.Detail)
	return err
}

// A canary is the agent.
type canary struct {
	*canaryCmd
	client   *http.Client
	body     []byte
	headers  http.Header
	registry *prometheus.Registry
	runs     *prometheus.CounterVec
	shifts   prometheus.Counter
	well     prometheus.Gauge
	wait     prometheus.Gauge

	state string // what it meets; empty: nothing is known yet
	next  string // what it may have shifted to
	seen  int    // how often in a row
}

func (c *canaryCmd) agent() (*canary, error) {
	if c.Every <= 0 || c.Calls < 1 || c.Confirm < 1 {
		return nil, usagef("--every, --calls and --confirm are more than 0")
	}
	a := &canary{canaryCmd: c, client: &http.Client{Timeout: max(time.Minute, 2*c.Slow)}, headers: http.Header{
		"Content-Type": {"application/json"}, "X-Tenant": {c.Tenant}, "X-User": {c.User}, "X-Weir-Explain": {"1"},
	}}
	if r, err := http.NewRequest(http.MethodPost, c.URL, nil); err != nil || r.URL.Host == "" {
		return nil, usagef("%q is no URL: write http://127.0.0.1:10000/openai/v1/chat/completions", c.URL)
	}
	if key := os.Getenv("WEIR_CANARY_KEY"); key != "" {
		a.headers.Set("Authorization", "Bearer "+key)
		a.headers.Set("X-Api-Key", key)
	}
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok || name == "" {
			return nil, usagef("--header %q: write NAME: VALUE", h)
		}
		a.headers.Set(textproto.TrimString(name), textproto.TrimString(value))
	}
	var err error
	if a.body, err = json.Marshal(map[string]any{"model": c.Model, "max_tokens": 1, "messages": []map[string]string{{"role": "user", "content": "ping"}}}); err != nil {
		return nil, err
	}
	if c.Body != "" {
		if a.body, err = os.ReadFile(c.Body); err != nil {
			return nil, usageError{err}
		}
	}
	a.runs = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_canary_runs_total", Help: "Runs, by what they met."}, []string{"state", "tier", "reason"})
	a.shifts = prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_canary_shifts_total", Help: "Times that what it meets has changed."})
	a.well = prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_canary_well", Help: "1: the last run was admitted in time."})
	a.wait = prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_canary_wait_seconds", Help: "How long the last run waited."})
	a.registry = prometheus.NewRegistry()
	a.registry.MustRegister(a.runs, a.shifts, a.well, a.wait)
	return a, nil
}

// step runs the workflow once, and says whether that is a shift. The first run is one if it is not well.
func (a *canary) step(ctx context.Context) finding {
	f := a.run(ctx)
	what := f.what()
	if what != a.next {
		a.next, a.seen = what, 0
	}
	a.seen++
	if what != a.state && (a.seen >= a.Confirm || a.state == "") {
		f.Shift = a.state != "" || what != "ok"
		a.state = what
	}
	a.runs.WithLabelValues(f.State, f.Tier, f.Reason).Inc()
	a.wait.Set(f.WaitS)
	a.well.Set(0)
	if f.State == "ok" {
		a.well.Set(1)
	}
	if f.Shift {
		a.shifts.Inc()
	}
	return f
}

// run makes the calls of one run, until one is not well.
func (a *canary) run(ctx context.Context) (worst finding) {
	tree := "canary-" + rand.Text()
	for range a.Calls {
		f := a.call(ctx, tree)
		if worst.State == "" || severity[f.State] > severity[worst.State] || f.State == worst.State && f.WaitS > worst.WaitS {
			worst = f
		}
		if severity[f.State] >= severity["denied"] {
			break
		}
	}
	return worst
}

func (a *canary) call(ctx context.Context, tree string) finding {
	f := finding{At: time.Now(), State: "ok"}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL, bytes.NewReader(a.body))
	if err != nil {
		f.State, f.Detail = "failed", err.Error()
		return f
	}
	r.Header = a.headers.Clone()
	r.Header.Set("X-Request-Tree", tree)
	answer, err := a.client.Do(r)
	wait := time.Since(f.At)
	if err != nil {
		f.State, f.Detail, f.WaitS = "failed", err.Error(), wait.Seconds()
		return f
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	h := answer.Header.Get
	if queued, err := time.ParseDuration(h("x-weir-queued")); err == nil {
		wait = queued
	}
	f.Status, f.Reason, f.Tier, f.WaitS = answer.StatusCode, h("x-weir-reason"), h("x-weir-tier"), wait.Seconds()
	switch decision := h("x-weir-decision"); {
	case decision == "deny":
		f.State, f.Detail = "denied", message(string(text))
	case answer.StatusCode >= 300:
		f.State, f.Detail = "failed", cmp.Or(message(string(text)), answer.Status)
	case decision == "degrade" || decision == "spill":
		f.State, f.Reason = "degraded", decision
	case wait >= a.Slow:
		f.State = "slow"
	}
	return f
}
