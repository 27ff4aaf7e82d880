// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// thirtyPolicy is a tool that takes five calls a second. With SHARE: 100%, all of the limit is the critical calls', who lend what
// they do not use: half of the burst is left to them.
const thirtyPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  tool: {upstream: "http://MOCK", dialect: generic, models: {"*": {rps: 5, burst: BURST, window: continuous}}}
classes:
  critical: {priority: 2, SHAREon_limit: queue, wait: 30s}
  normal:   {priority: 1, on_limit: queue, wait: 20s}
`

// rowH is what the simulator says of this workload (weir simulate agent-burst, row H), calls of 120 ms included.
const rowH = 5720 * time.Millisecond

// The reference workload in real time: thirty tool calls at once over four workers, three of them critical, against a provider
// that takes five a second. None fails, here or there, and all are done in the time of the simulator.
func thirty(t *testing.T, burst, share string) (s *stack, critical time.Duration) {
	policy := strings.NewReplacer("BURST", burst, "SHARE", share).Replace(thirtyPolicy)
	s = startStackOn(t, startMock(t, "--rpm", "5", "--window", "1s"), policy, "--workers", "4")
	var wg sync.WaitGroup
	var mu sync.Mutex
	took := map[string]time.Duration{}
	began := time.Now()
	for i := range 30 {
		class := "normal"
		if i == 10 || i == 18 || i == 25 {
			class = "critical"
		}
		wg.Go(func() {
			c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			status, err := try(c, s.proxy, "/tool/search", `{}`, "x-priority", class, "x-mock-tag", class, "x-mock-latency", "120ms")
			mu.Lock()
			defer mu.Unlock()
			took[class] = max(took[class], time.Since(began))
			if status != 200 || err != nil {
				t.Errorf("call %d: %d %v", i, status, err)
			}
		})
	}
	wg.Wait()
	all := max(took["critical"], took["normal"])
	if all < rowH*9/10 || all > rowH*11/10 {
		t.Errorf("all done after %v; the simulator says %v", all, rowH)
	}
	for _, e := range append(s.mock.events("critical"), s.mock.events("normal")...) {
		if e.Outcome != "admitted" {
			t.Errorf("the provider answers %d %s", e.Status, e.Outcome)
		}
	}
	t.Logf("critical ones done after %v, all after %v", took["critical"], all)
	return s, took["critical"]
}

// try makes a request and gives its status.
func try(c *http.Client, proxy, path, body string, headers ...string) (int, error) {
	r, err := http.NewRequest("POST", "http://"+proxy+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("content-type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

// Where the critical calls have a share, they are done in the first half second, whoever came first.
func TestThirtyToolCalls(t *testing.T) {
	if _, critical := thirty(t, "4", "share: 100%, "); critical > 500*time.Millisecond {
		t.Errorf("critical ones done after %v", critical)
	}
}

// Without a share the first that come take the burst; then priority holds over all workers: the next three are the critical ones,
// but for one of each worker at most.
func TestThirtyToolCallsByPriority(t *testing.T) {
	s, critical := thirty(t, "2", "")
	last := s.mock.events("critical")[2].At
	before := 0
	for _, e := range s.mock.events("normal") {
		if e.At < last {
			before++
		}
	}
	if before > 2+4 || critical > 1500*time.Millisecond {
		t.Errorf("%d normal calls before the last critical one, which was done after %v", before, critical)
	}
}
