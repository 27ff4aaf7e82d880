// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// attemptsPolicy counts requests and retries where they can be seen: a tree has six calls and two retries.
const attemptsPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "UPSTREAM", models: {"*": {rpm: 600, burst: 100%}}}
  other: {upstream: "UPSTREAM", dialect: openai, models: {"*": {rpm: 600, burst: 100%}}}
  tool: {upstream: "UPSTREAM", dialect: generic}
  dead: {upstream: "http://127.0.0.1:1", dialect: openai}
limits:
  tree: {default: {calls: 6, retries: 2, in_flight: 3, ttl: 10m}}
  tool: {search: {rph: 2, burst: 100%}, tool: {rph: 12, burst: 100%}, default: {rph: 1_000}}
who: {tree: [header x-request-tree, baggage weir.tree, trace-id]}
`

// A script is a provider that answers as the request says, each attempt after the other, and keeps what came.
type script struct {
	mu   sync.Mutex
	came map[string][]http.Header // by x-script
}

// answers are statuses, each with the seconds of a Retry-After if there is one: 503,429/1,200. The last one goes on.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	name, answers, _ := strings.Cut(r.Header.Get("x-script"), "=")
	s.mu.Lock()
	n := len(s.came[name])
	s.came[name] = append(s.came[name], r.Header.Clone())
	s.mu.Unlock()
	if wait, err := time.ParseDuration(r.Header.Get("x-script-wait")); err == nil {
		time.Sleep(wait)
	}
	list := strings.Split(answers, ",")
	status, wait, _ := strings.Cut(list[min(n, len(list)-1)], "/")
	code, _ := strconv.Atoi(status)
	if wait != "" {
		w.Header().Set("retry-after", wait)
	}
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(code)
	fmt.Fprint(w, `{"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}`)
}

func (s *script) attempts(name string) []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.came[name]
}

// Envoy's own retries, in a real one: each is charged as a call and as a retry of its tree, is refused once either is used up, and
// is then not tried again; nothing of how they are counted leaves. A Retry-After closes the pool at once for all workers.
func TestEnvoysAttempts(t *testing.T) {
	t.Parallel()
	provider := &script{came: map[string][]http.Header{}}
	up := httptest.NewServer(provider)
	defer up.Close()
	s := startStack(t, strings.ReplaceAll(attemptsPolicy, "UPSTREAM", up.URL), "--workers", "2")
	body := `{"model":"gpt-4o","max_tokens":2,"messages":[{"role":"user","content":"hi"}]}`
	chat := func(provider, name, answers, tree string, more ...string) (int, http.Header) {
		t.Helper()
		status, h, err := ask("POST", "http://"+s.proxy+"/"+provider+"/v1/chat/completions", body, append(more, "x-script", name+"="+answers, "x-request-tree", tree)...)
		if err != nil {
			t.Fatal(err)
		}
		return status, h
	}
	if status, h := chat("openai", "twice", "503,503,200", "t", "x-weir-ticket", "mine"); status != 200 {
		t.Fatalf("503 twice, then 200: %d %v", status, h)
	}
	came := provider.attempts("twice")
	if len(came) != 3 {
		t.Fatalf("%d attempts", len(came))
	}
	for _, h := range came {
		for name := range h {
			if strings.HasPrefix(strings.ToLower(name), "x-weir") || strings.HasPrefix(strings.ToLower(name), "x-envoy") {
				t.Errorf("%s left", name)
			}
		}
	}
	status, h := chat("openai", "again", "503", "t") // the fourth call; a third retry
	if status != 429 || h.Get("x-weir-reason") != "retry_budget_exhausted" || h.Get("x-should-retry") != "false" || len(provider.attempts("again")) != 1 {
		t.Errorf("without any retries left: %d %v, %d attempts", status, h, len(provider.attempts("again")))
	}
	for i := range 2 {
		if status, h := chat("openai", "more", "200", "t"); status != 200 {
			t.Errorf("call %d: %d %v", 5+i, status, h)
		}
	}
	if status, h := chat("openai", "seventh", "200", "t"); status != 429 || h.Get("x-weir-dimension") != "calls" {
		t.Errorf("the seventh call: %d %v", status, h)
	}
	if status, _ := chat("openai", "never", "503", "u"); status != 503 || len(provider.attempts("never")) != 3 {
		t.Errorf("503 for ever: %d, %d attempts", status, len(provider.attempts("never")))
	}
	if status, h := chat("dead", "dead", "200", "v"); status != 503 {
		t.Errorf("not reachable: %d %v", status, h)
	}
	if status, h := chat("dead", "dead", "200", "v"); status != 429 || h.Get("x-weir-reason") != "retry_budget_exhausted" {
		t.Errorf("not reachable, and no retries left: %d %v", status, h)
	}
	write := func(name string, more ...string) int {
		status, _, _ := ask("POST", "http://"+s.proxy+"/tool/tickets", `{}`, append(more, "x-script", name+"=503,200")...)
		return status
	}
	if write("write") != 503 || write("keyed", "idempotency-key", "k") != 200 {
		t.Error("a write is sent again with a key only")
	}

	// A tool's limit holds for LLM calls that name it and for its own traffic, which needs to name nothing; what is not sent for
	// one costs the others nothing.
	name := func(tool string) string {
		_, h := chat("openai", "tools", "200", "x-"+tool, "x-tool", tool)
		return h.Get("x-weir-tier")
	}
	if got := strings.Join([]string{name("search"), name("search"), name("search"), name("other")}, ","); got != ",,tool," {
		t.Errorf("a tool of two calls was refused by %q", got)
	}
	for i := range 20 { // some of them were used above
		if status := write(fmt.Sprint("more", i), "idempotency-key", "k"); status == 429 && i < 3 {
			t.Errorf("the tool's call %d is refused", i)
		} else if i == 19 && status != 429 {
			t.Errorf("the tool's limit does not hold: %d", status)
		}
	}

	// The leaves of one tree, whoever names it how, run three at a time.
	var wg sync.WaitGroup
	var refused atomic.Int64
	for i := range 6 {
		wg.Go(func() {
			by := []string{"baggage", "weir.tree=leaves", "x-request-tree", ""}
			if i%2 == 0 {
				by = []string{"x-request-tree", "leaves"}
			}
			status, h, err := ask("POST", "http://"+s.proxy+"/openai/v1/chat/completions", body, append(by, "x-script", "leaves=200", "x-script-wait", "500ms")...)
			if status == 429 && h.Get("x-weir-dimension") == "in_flight" && h.Get("x-weir-tier") == "tree" {
				refused.Add(1)
			} else if status != 200 || err != nil {
				t.Errorf("leaf %d: %d %v %v", i, status, h, err)
			}
		})
	}
	wg.Wait()
	if n := refused.Load(); n != 3 {
		t.Errorf("%d of six leaves at once were refused", n)
	}

	before := time.Now()
	if status, h := chat("other", "slow", "429/30", "w"); status != 429 || h.Get("retry-after") != "30" || h.Get("x-weir-reason") != "" || h.Get("x-envoy-ratelimited") != "" {
		t.Errorf("a long Retry-After is for the caller: %d %v", status, h)
	}
	if status, h := chat("openai", "short", "429/2,200", "x"); status != 200 || time.Since(before) < 2*time.Second {
		t.Errorf("a short one is waited for: %d %v", status, h)
	}
	for i := range 20 { // over both workers
		status, h := chat("other", "closed", "200", fmt.Sprint("y", i))
		ms, _ := strconv.ParseFloat(h.Get("retry-after-ms"), 64)
		left := 30_000 - float64(time.Since(before).Milliseconds())
		if status != 429 || h.Get("x-weir-reason") != "provider_cooling" || ms < left-50 || ms > 30_000*1.2 {
			t.Fatalf("call %d to a closed pool: %d %v, %v ms are left", i, status, h, left)
		}
	}
	if n := len(provider.attempts("closed")); n != 0 {
		t.Errorf("%d calls came through a closed pool", n)
	}
	_, stats := get(t, "http://"+s.admin+"/stats?filter=panics")
	if strings.Contains(stats, "weir_panics") {
		t.Error(stats)
	}
}
