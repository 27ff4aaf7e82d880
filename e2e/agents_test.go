// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const agentsPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://MOCK"}
  search: {upstream: "http://MOCK", dialect: generic}
  rest: {upstream: "http://MOCK", dialect: generic, prefix: /}
limits:
  tree: {default: {calls: 20, tokens: 8000}}
  user: {default: {tpm: 20_000, burst: 100%}}
fanout: {ttl: 4s}
hints: {header: true, inject: true}
`

// An agent in a test, each of whose requests has a connection of its own, so that they come to all workers.
type agent struct {
	t       *testing.T
	proxy   string
	headers []string
	client  *http.Client
}

func newAgent(t *testing.T, proxy string, headers ...string) *agent {
	return &agent{t, proxy, headers, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}}
}

// ask sends a request and reads the answer as JSON.
func (a *agent) ask(method, path, body string, headers ...string) (status int, h http.Header, answer map[string]any) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, "http://"+a.proxy+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("content-type", "application/json")
	all := append(append([]string{}, a.headers...), headers...)
	for i := 0; i < len(all); i += 2 {
		r.Header.Set(all[i], all[i+1])
	}
	resp, err := a.client.Do(r)
	if err != nil {
		a.t.Error(err)
		return 0, http.Header{}, nil
	}
	defer resp.Body.Close()
	_ = json.NewDecoder(resp.Body).Decode(&answer)
	return resp.StatusCode, resp.Header, answer
}

func (a *agent) chat(output int, headers ...string) (int, http.Header) {
	a.t.Helper()
	status, h, _ := a.ask("POST", "/openai/v1/chat/completions", fmt.Sprintf(`{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"hi"}]}`, output), headers...)
	return status, h
}

func (a *agent) left(tier, counts string) float64 {
	a.t.Helper()
	_, _, b := a.ask("GET", "/.weir/budget", "")
	list, _ := b["left"].([]any)
	for _, e := range list {
		if m := e.(map[string]any); m["tier"] == tier && m["counts"] == counts {
			return m["left"].(float64)
		}
	}
	a.t.Fatalf("no %s of the %s in %v", counts, tier, b)
	return 0
}

// In a real Envoy with two workers eight branches that were reserved together go wherever they come to, though somebody else has
// taken what the tree had left; the ninth is a call like any other; nobody else can use the reservation; expiry returns the rest.
func TestFanouts(t *testing.T) {
	t.Parallel()
	s := startStack(t, agentsPolicy, "--workers", "2")
	a := newAgent(t, s.proxy, "x-tenant", "a", "x-user", "u", "x-request-tree", "t")
	ask := `{"provider":"openai","model":"gpt-4o","branches":%d,"input_tokens":20,"max_tokens":100,"tools":{"search":4}}`
	status, h, answer := a.ask("POST", "/.weir/reserve", fmt.Sprintf(ask, 30))
	if status != 429 || answer["fits"] != 17.0 || h.Get("x-weir-reason") != "fanout_refused" || h.Get("x-should-retry") != "false" {
		t.Errorf("30 branches: %d %v %v", status, answer, h)
	}
	if status, _, answer = a.ask("POST", "/.weir/reserve", fmt.Sprintf(ask, 8)); status != 200 {
		t.Fatalf("%d %v", status, answer)
	}
	id, _ := answer["reservation"].(string)
	for range 8 { // what is left beside the reservation
		if status, h := a.chat(10); status != 200 {
			t.Errorf("%d %v", status, h)
		}
	}
	if status, h := a.chat(10); status != 429 || h.Get("x-weir-tier") != "tree" {
		t.Errorf("a call beside the reservation: %d %v", status, h)
	}
	other := newAgent(t, s.proxy, "x-tenant", "b", "x-user", "u", "x-request-tree", "t")
	for range 4 {
		if status, h := other.chat(10, "x-weir-reservation", id); status != 200 {
			t.Errorf("another tenant: %d %v", status, h)
		}
	}
	if n := other.left("tree", "calls"); n != 16 {
		t.Errorf("another tenant has %v calls left: it used the reservation", n)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for range 9 {
		wg.Go(func() {
			status, _ := a.chat(100, "x-weir-reservation", id, "x-mock-latency", "200ms")
			mu.Lock()
			defer mu.Unlock()
			got[status]++
		})
	}
	wg.Wait()
	if got[200] != 8 || got[429] != 1 {
		t.Errorf("nine branches of eight: %v", got)
	}
	if status, h, _ := a.ask("GET", "/search/q", "", "x-weir-reservation", id); status != 200 {
		t.Errorf("a search: %d %v", status, h)
	}
	eventually(t, 10*time.Second, func() (bool, string) {
		n := a.left("tree", "calls")
		return n == 3, fmt.Sprintf("%v calls are left when the reservation has expired with 3 of them", n)
	})
	eventually(t, 5*time.Second, func() (bool, string) {
		_, stats := get(t, "http://"+s.admin+"/stats/prometheus?filter=weir")
		return strings.Contains(stats, `weir_branches_total{weir_source="reservation"`) && strings.Contains(stats, `weir_fanouts_total{weir_decision="deny",weir_reason="fanout_refused"`) &&
			!strings.Contains(stats, "weir_panics"), stats
	})
}

// What is under /.weir is answered by the filter whatever the mode, and never reaches a provider, also one that has every path.
func TestEndpointsStay(t *testing.T) {
	t.Parallel()
	s := startStack(t, agentsPolicy, "--workers", "2")
	a := newAgent(t, s.proxy, "x-tenant", "a", "x-mock-tag", "weir")
	check := func(what string, want int) {
		t.Helper()
		for range 6 {
			if status, h, answer := a.ask("GET", "/.weir/budget", ""); status != want || h.Get("x-weir-decision") == "" || want == 200 && answer["mode"] != what {
				t.Errorf("%s: %d %v %v", what, status, answer, h)
			}
			if status, _, answer := a.ask("GET", "/.weir/nothing", ""); status != 404 {
				t.Errorf("%s: %d %v", what, status, answer)
			}
		}
	}
	check("enforce", 200)
	for _, mode := range []string{"shadow", "off"} {
		s.change("mode: " + mode + agentsPolicy)
		check(mode, 200)
	}
	s.change("endpoints: false" + agentsPolicy)
	check("endpoints: false", 404)
	if ev := s.mock.events("weir"); len(ev) != 0 {
		t.Errorf("%d came to the provider: %+v", len(ev), ev[0])
	}
	if status, _, _ := a.ask("GET", "/other", ""); status != 200 || len(s.mock.events("weir")) != 1 {
		t.Errorf("another path: %d", status)
	}
}

// A hint reaches the provider whole, at the end of the messages, and is paid for; the caller gets it in a header.
func TestHintsReachTheProvider(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var bodies [][]byte
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, b)
		w.Header().Set("content-type", "application/json")
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"ok"}}]}`)) // without usage: what was counted is charged
	}))
	defer provider.Close()
	s := startStack(t, strings.ReplaceAll(agentsPolicy, "http://MOCK", provider.URL), "--workers", "2")
	a := newAgent(t, s.proxy, "x-tenant", "a", "x-user", "u", "x-request-tree", "t")
	body := `{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"` + strings.Repeat("hello ", 6200) + `"}]}`
	status, h, _ := a.ask("POST", "/openai/v1/chat/completions", fmt.Sprintf(body, 1))
	before := a.left("tree", "tokens")
	hint := fmt.Sprintf("%v tokens left for this request tree in all: keep prompts and answers short.", before)
	if status != 200 || len(bodies) != 1 || string(bodies[0]) != fmt.Sprintf(body, 1) {
		t.Fatalf("the first: %d %v", status, h)
	}
	small := `{"model":"gpt-4o","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`
	status, h, _ = a.ask("POST", "/openai/v1/chat/completions", small)
	want := strings.Replace(small, "}]}", `},{"role":"system","content":"[weir] `+hint+`"}]}`, 1)
	if status != 200 || len(bodies) != 2 || !bytes.Equal(bodies[1], []byte(want)) {
		t.Fatalf("the second: %d\n%s, want\n%s", status, bodies[1], want)
	}
	if got := h.Get("x-weir-hint"); !strings.HasSuffix(got, " tokens left for this request tree in all: keep prompts and answers short.") {
		t.Errorf("%q", got)
	}
	if cost := before - a.left("tree", "tokens"); cost < 8+20 || cost > 8+40 {
		t.Errorf("the second costs %v tokens, the message has 8 and the hint some 25", cost)
	}
}
