// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const stormPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai:
    upstream: "http://MOCK"
    models: {storm: {rps: 60, burst: 2, window: continuous, in_flight: 20}, slots: {in_flight: 1}}
limits:
  tenant: {default: {in_flight: 400}}
classes:
  critical: {priority: 3, on_limit: queue, wait: 30s}
  normal:   {priority: 2, on_limit: queue, wait: 30s}
  hasty:    {priority: 1}
queue: {entries: 300, bytes: 8MiB}
`

const stormWorkers = 4

// A stormCall is a request of the storm below, in the time of the test.
type stormCall struct {
	class     string
	from, to  time.Time
	succeeded bool
}

// Ten thousand requests wait over four workers, and most of them are aborted at random: normal ones all the time, and every three
// seconds sixty critical ones at once. No priority is inverted by more than one request of each worker, and in the end every place,
// byte and slot is free.
func TestStorm(t *testing.T) {
	s := startStack(t, stormPolicy, "--workers", fmt.Sprint(stormWorkers))
	const total, critical, normal = 10_000, 60, 140
	const wave = 3 * time.Second
	var all [critical + normal][]stormCall
	var wg sync.WaitGroup
	var made, aborted atomic.Int64
	for i := range all {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
			defer c.CloseIdleConnections()
			for made.Add(1) <= total {
				call := stormCall{class: "normal", from: time.Now()}
				patience, next := time.Duration(1+r.IntN(500))*time.Millisecond, call.from
				if i < critical {
					call.class, patience, next = "critical", 3*patience, call.from.Add(wave)
				}
				status := s.storm(c, "storm", call.class, call.from.UnixNano(), patience, 0, 100+r.IntN(10_000))
				call.to, call.succeeded = time.Now(), status == 200
				if status == 0 {
					aborted.Add(1)
				} else if status != 200 {
					t.Errorf("status %d", status)
				}
				all[i] = append(all[i], call)
				time.Sleep(time.Until(next))
			}
		})
	}
	wg.Wait()
	t.Logf("%d of %d were aborted", aborted.Load(), total)
	if aborted.Load() < total/2 {
		t.Error("the test does not test anything")
	}
	s.inversions(all[:])
	s.nothingHeld()
}

// storm makes a request that is aborted after some time; 0: it was.
func (s *stack) storm(c *http.Client, model, class string, sent int64, patience, latency time.Duration, bytes int) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	body := `{"model":"` + model + `","max_tokens":1,"messages":[]`
	body += strings.Repeat(" ", max(bytes-len(body)-1, 0)) + "}"
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+s.proxy+"/openai/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{
		"content-type": "application/json", "x-priority": strings.Replace(class, "probe", "normal", 1), "x-tenant": "storm-" + model, "x-mock-latency": latency.String(),
		"x-mock-tag": fmt.Sprintf("%s@%d", class, sent),
	} {
		r.Header.Set(name, value)
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// inversions looks at each critical call while it waited, and the provider saw nothing that was under way before: on a busy machine
// a call takes long from the test to Envoy, and from there to the provider. In that time each worker may send one normal call.
func (s *stack) inversions(all [][]stormCall) {
	const margin = int64(150 * time.Millisecond)
	went := map[int64]int64{}
	for _, e := range s.mock.events("critical") {
		went[e.Sent] = e.At
	}
	normal, looked, worst := s.mock.events("normal"), 0, 0
	for i := range all {
		for _, call := range all[i] {
			from, to := call.from.UnixNano()+margin, call.to.UnixNano()-margin
			if call.succeeded {
				to = went[call.from.UnixNano()] - margin
			}
			if call.class != "critical" || to <= from {
				continue
			}
			n := 0
			for _, e := range normal {
				if e.At > from && e.At < to {
					n++
				}
			}
			looked, worst = looked+1, max(worst, n)
		}
	}
	s.t.Logf("of %d critical calls that waited, none was passed by more than %d of %d normal ones", looked, worst, len(normal))
	if worst > stormWorkers || looked < 100 || len(normal) < 50 {
		s.t.Errorf("%d normal calls passed a critical one, over %d workers; %d critical and %d normal ones", worst, stormWorkers, looked, len(normal))
	}
}

// nothingHeld fills the queue by entries and by bytes, and all slots, to see that all of them are there.
func (s *stack) nothingHeld() {
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 400}}
	defer c.CloseIdleConnections()
	many := func(n int, model string, patience, latency time.Duration, bytes int) (statuses map[int]int) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		statuses = map[int]int{}
		for range n {
			wg.Go(func() {
				status := s.storm(c, model, "probe", 0, patience, latency, bytes)
				mu.Lock()
				defer mu.Unlock()
				statuses[status]++
			})
		}
		wg.Wait()
		return statuses
	}
	time.Sleep(200 * time.Millisecond)
	began := time.Now()
	if got := many(20, "storm", 20*time.Second, 2*time.Second, 0); got[200] != 20 || time.Since(began) > 6*time.Second {
		s.t.Errorf("twenty calls in flight: %v after %v", got, time.Since(began))
	}
	var holder sync.WaitGroup
	holder.Go(func() { s.storm(c, "slots", "probe", 0, 8*time.Second, time.Minute, 0) })
	time.Sleep(200 * time.Millisecond)
	if got := many(303, "slots", 3*time.Second, 0, 0); got[429] != 3 || got[0] != 300 {
		s.t.Errorf("303 calls for 300 places: %v", got)
	}
	time.Sleep(200 * time.Millisecond)
	if got := many(10, "slots", 3*time.Second, 0, 1<<20); got[429] != 2 || got[0] != 8 {
		s.t.Errorf("10 calls of a MiB for 8 MiB: %v", got)
	}
	c.CloseIdleConnections()
	holder.Wait()
}
