// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A gate answers as weir does, by what each run is to meet.
func gate(t *testing.T, perRun int, states ...string) *httptest.Server {
	var mu sync.Mutex
	var trees []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		tree := r.Header.Get("X-Request-Tree")
		if len(trees) == 0 || trees[len(trees)-1] != tree {
			trees = append(trees, tree)
		}
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-User") != "weir-canary" || r.Header.Get("X-Extra") != "a: b" || !bytes.Contains(body, []byte(`"max_tokens":1`)) {
			t.Errorf("%v %s", r.Header, body)
		}
		switch state := states[min(len(trees), len(states))-1]; state {
		case "ok":
		case "slow":
			w.Header().Set("x-weir-queued", "7.5s")
		case "degraded":
			w.Header().Set("x-weir-decision", "degrade")
		case "failed":
			w.WriteHeader(500)
		default: // a tier
			w.Header().Set("x-weir-decision", "deny")
			w.Header().Set("x-weir-reason", "limit_exceeded")
			w.Header().Set("x-weir-tier", state)
			w.WriteHeader(429)
			_, _ = io.WriteString(w, `{"error":{"message":"too much"}}`)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// It says once when what it meets has changed for good, and which tier it is; one odd run is no shift.
func TestCanaryShifts(t *testing.T) {
	s := gate(t, 2, "ok", "ok", "tenant", "ok", "tenant", "tenant", "tenant", "provider", "provider", "slow", "slow", "ok", "ok")
	code, out, errs := weir(t, "", "canary", s.URL+"/openai/v1/chat/completions", "--every", "1ms", "--count", "13", "-H", "x-extra: a: b")
	var got []string
	for line := range strings.Lines(out) {
		_, what, _ := strings.Cut(line, " ")
		what, _, _ = strings.Cut(what, ", waited")
		got = append(got, what)
	}
	if want := "ALARM denied tenant limit_exceeded|ALARM denied provider limit_exceeded|ALARM slow|ok"; strings.Join(got, "|") != want || code != exitFailed || errs != "" {
		t.Errorf("%d %s\n%s%s", code, want, out, errs)
	}
	s = gate(t, 2, "ok")
	if code, out, _ := weir(t, "", "canary", s.URL, "--every", "1ms", "--count", "3", "-H", "x-extra: a: b"); code != 0 || out != "" {
		t.Error(code, out)
	}
}

func TestCanaryFindings(t *testing.T) {
	for state, want := range map[string]finding{
		"ok": {State: "ok", Status: 200}, "slow": {State: "slow", Status: 200, WaitS: 7.5}, "degraded": {State: "degraded", Status: 200, Reason: "degrade"},
		"failed": {State: "failed", Status: 500, Detail: "500 Internal Server Error"},
		"user":   {State: "denied", Status: 429, Reason: "limit_exceeded", Tier: "user", Detail: "too much"},
	} {
		code, out, _ := weir(t, "", "canary", gate(t, 1, state).URL, "--count", "1", "--calls", "1", "--json", "-H", "X-Extra: a: b")
		var got finding
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err, out)
		}
		if got.Shift = got.Shift && state == "ok"; state != "slow" {
			got.WaitS = 0
		}
		got.At = time.Time{}
		if got != want || (code == 0) != (state == "ok") {
			t.Errorf("%s: code %d, %+v, want %+v", state, code, got, want)
		}
	}
	code, out, _ := weir(t, "", "canary", "http://127.0.0.1:1/x", "--count", "1", "--json")
	if code != exitFailed || !strings.Contains(out, `"state":"failed"`) {
		t.Error(code, out)
	}
	for want, args := range map[string][]string{
		"is no URL": {"here"}, "NAME: VALUE": {"http://x", "-H", "x"}, "more than 0": {"http://x", "--calls", "0"}, "other machines": {"http://x", "--metrics", "0.0.0.0:1"}, "/nowhere": {"http://x", "--body", "/nowhere"},
	} {
		if code, _, errs := weir(t, "", append([]string{"canary"}, args...)...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", want, code, errs)
		}
	}
}

func TestCanaryMetrics(t *testing.T) {
	c := canaryCmd{URL: gate(t, 1, "ok", "tenant", "tenant").URL, Every: 1, Calls: 1, Confirm: 1, Slow: time.Minute, User: "weir-canary", Header: []string{"x-extra: a: b"}}
	a, err := c.agent()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		a.step(context.Background())
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`weir_canary_runs_total{reason="limit_exceeded",state="denied",tier="tenant"} 2`, "weir_canary_shifts_total 1", "weir_canary_well 0", "\nweir_canary_wait_seconds ",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
}
