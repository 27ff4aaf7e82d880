// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
)

const deadQueuePolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  tool: {upstream: "http://MOCK", dialect: generic, models: {"*": {in_flight: 2}}}
classes:
  waits: {on_limit: queue, wait: 60s}
queue: {entries: 24}
`

// A worker's VM dies while the queue is full. Its callers get an answer when nothing has moved for Envoy's stream_idle_timeout, here
// ten seconds, those of the other worker theirs; and when the dead one's leases are over, every place and every slot is free.
func TestVMDiesWithAFullQueue(t *testing.T) {
	t.Parallel()
	const idle = 10 * time.Second
	s := newSplit(t, deadQueuePolicy)
	s.wasm = trapping(t)
	s.startIdle(idle)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	call := func(latency string) int {
		status, err := try(c, s.proxy, "/tool/x", `{}`, "x-mock-latency", latency, "x-mock-tag", "call")
		if err != nil {
			t.Error(err)
		}
		return status
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses, longest := map[int]int{}, time.Duration(0)
	for range 2 {
		wg.Go(func() { call("6s") })
	}
	time.Sleep(500 * time.Millisecond)
	for range 27 {
		wg.Go(func() {
			began := time.Now()
			status := call("1ms")
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
			longest = max(longest, time.Since(began))
		})
	}
	eventually(t, 5*time.Second, func() (bool, string) {
		mu.Lock()
		defer mu.Unlock()
		return statuses[429] == 3, "the queue does not get full"
	})
	s.trap()
	wg.Wait()
	t.Logf("answers %v, the last after %v", statuses, longest)
	if statuses[200]+statuses[503]+statuses[504] != 24 || statuses[503]+statuses[504] == 0 || longest > idle+8*time.Second {
		t.Errorf("answers %v, the last after %v", statuses, longest)
	}
	// Both slots are free again, when the leases of the dead one's calls are over, and so are all places.
	eventually(t, 20*time.Second, func() (bool, string) {
		began := time.Now()
		var pair sync.WaitGroup
		for range 2 {
			pair.Go(func() { call("500ms") })
		}
		pair.Wait()
		return time.Since(began) < 900*time.Millisecond, "two calls in flight take " + time.Since(began).String()
	})
	for range 2 {
		wg.Go(func() { call("4s") })
	}
	time.Sleep(300 * time.Millisecond)
	statuses = map[int]int{}
	for range 26 {
		wg.Go(func() {
			status := call("1ms")
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	wg.Wait()
	if statuses[200] != 24 || statuses[429] != 2 {
		t.Errorf("26 calls for 24 places: %v", statuses)
	}
}

// startIdle starts an Envoy on its own, with two workers, that gives up streams on which nothing moves for so long.
func (s *split) startIdle(idle time.Duration) {
	s.t.Helper()
	config := []byte(run(s.t, "bootstrap", "--policy", s.policy, "--node", "e2e", "--xds", s.xds, "--wasm", s.wasm, "--form", "whole", "--listen", "127.0.0.1:0"))
	short := bytes.ReplaceAll(config, []byte(": 600s"), []byte(": "+idle.String()))
	if bytes.Equal(config, short) {
		s.t.Fatal("no idle timeout of ten minutes in what weir bootstrap prints")
	}
	log := new(output)
	p, err := envoy.Run(context.Background(), envoy.Options{Bootstrap: short, Concurrency: 2, Log: log, StartTimeout: startTimeout})
	if err != nil {
		s.t.Fatalf("%v\n%s", err, tail(log.String(), 3000))
	}
	s.t.Cleanup(func() {
		_ = p.Stop()
		if s.t.Failed() {
			s.t.Logf("Envoy wrote:\n%s", tail(log.String(), 4000))
		}
	})
	if s.proxy, err = p.Listener(context.Background(), "weir"); err != nil {
		s.t.Fatal(err)
	}
}
