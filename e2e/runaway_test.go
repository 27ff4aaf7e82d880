// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const runawayPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://MOCK", models: {"*": {rps: 400}}}
  search: {upstream: "http://MOCK", dialect: generic}
limits:
  user: {default: {rps: 2, burst: 50%, window: continuous}}
  tree: {default: {calls: 300, in_flight: 8}}
  tool: {default: {in_flight: 4}}
classes:
  all: {on_limit: queue, wait: 20s}
`

// One tenant's runaway tree, of 11 tools and 47 calls at a time that are made again at once, leaves the wait of the other 99 users
// as it is: the 95th percentile is the same within a tenth.
func TestRunawayTree(t *testing.T) {
	t.Parallel()
	s := startStack(t, runawayPolicy, "--workers", "4")
	alone := s.others()
	var stop atomic.Bool
	var runaway sync.WaitGroup
	var calls atomic.Int64
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 47}, Timeout: 25 * time.Second}
	for i := range 47 {
		runaway.Go(func() {
			for !stop.Load() {
				_, _ = try(c, s.proxy, "/search/q", `{}`, "x-tenant", "acme", "x-user", "runaway", "x-request-tree", "r",
					"x-tool", fmt.Sprint("tool", i%11), "x-weir-deadline", "3s", "x-mock-tag", "runaway")
				calls.Add(1)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	began := time.Now()
	time.Sleep(500 * time.Millisecond)
	beside := s.others()
	stop.Store(true)
	runaway.Wait()
	t.Logf("p95 wait of 99 users: %v alone, %v beside %d calls of a runaway tree", alone, beside, calls.Load())
	if alone > 2200*time.Millisecond { // by the users' own limits it is 1.5 s
		t.Errorf("without it the 95th percentile is %v", alone)
	}
	// What a busy machine adds to the 1.5 s it may add once more.
	if busy := max(alone-1500*time.Millisecond, 0); beside < alone*9/10-busy || beside > alone*11/10+busy {
		t.Errorf("the 95th percentile of the others' wait was %v, and is %v", alone, beside)
	}
	most := int(time.Since(began).Seconds()*2) + 2 // what its user may
	if n := len(s.mock.events("runaway")); n > most || n < 3 || calls.Load() < 47 {
		t.Errorf("%d of %d calls of the runaway got through, at most %d", n, calls.Load(), most)
	}
}

// others has 99 users make four calls at once, of which three have to wait, and gives the 95th percentile of how long they took.
func (s *stack) others() time.Duration {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var waits []time.Duration
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 400}}
	defer c.CloseIdleConnections()
	for user := range 99 {
		for range 4 {
			wg.Go(func() {
				began := time.Now()
				status, err := try(c, s.proxy, "/openai/v1/chat/completions", `{"model":"gpt-4o","max_tokens":1,"messages":[]}`,
					"x-tenant", "acme", "x-user", fmt.Sprint("u", user), "x-mock-tag", "others")
				mu.Lock()
				defer mu.Unlock()
				waits = append(waits, time.Since(began))
				if status != 200 || err != nil {
					s.t.Errorf("user %d: %d %v", user, status, err)
				}
			})
		}
	}
	wg.Wait()
	time.Sleep(600 * time.Millisecond) // the users' buckets are full again
	slices.Sort(waits)
	return waits[len(waits)*95/100]
}
