// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// windowPolicy has a default tenant of 10,000 tokens in any window.
func windowPolicy(window time.Duration) string {
	return fmt.Sprintf(`
apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://MOCK", models: {"*": {rpm: 1_000_000}}}
limits:
  tenant:
    default: {tpm: %d, window: %v}
`, 10_000*int64(time.Minute/time.Second)/int64(window/time.Second), window)
}

// send sends calls at once and counts the answers by status.
func send(t testing.TB, proxy string, calls ...call) map[int]int {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var all sync.WaitGroup
	statuses := map[int]int{}
	for _, c := range calls {
		all.Go(func() {
			resp, err := client.Do(c.request(proxy))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			mu.Lock()
			statuses[resp.StatusCode]++
			mu.Unlock()
		})
	}
	all.Wait()
	return statuses
}

func repeat(c call, n int) []call {
	calls := make([]call, n)
	for i := range calls {
		calls[i] = c
	}
	return calls
}

// offer sends a burst, and then goes on at a rate for a while.
func offer(t testing.TB, proxy string, c call, n int, every, for_ time.Duration) (admitted, refused int) {
	statuses := send(t, proxy, repeat(c, n)...)
	for end := time.Now().Add(for_); time.Now().Before(end); time.Sleep(every) {
		for status, k := range send(t, proxy, c) {
			statuses[status] += k
		}
	}
	for status := range statuses {
		if status != 200 && status != 429 {
			t.Errorf("%s: %d answers with status %d", c.tenant, statuses[status], status)
		}
	}
	return statuses[200], statuses[429]
}

// checkWindow holds what the mock saw of a tenant against a limit for any window, and against burst + rate x time. Two calls
// were admitted at times that lie no further apart than from when the test sent the first to when the mock got the second, so
// what breaks a limit by that measure breaks it for certain, however busy the machine is.
func checkWindow(t testing.TB, m *mockProvider, tenant string, limit int64, window time.Duration) {
	t.Helper()
	events := m.events(tenant)
	for i, first := range events {
		sum := int64(0)
		for _, e := range events[i:] {
			sum += e.Input + e.Output
			dt := time.Duration(e.At - first.Sent)
			if dt < window && sum > limit {
				t.Fatalf("%s: %d tokens within %v, the limit is %d in %v", tenant, sum, dt, limit, window)
			}
			if most := limit/4 + int64(float64(limit)*float64(dt)/float64(window)); sum > most {
				t.Fatalf("%s: %d tokens within %v, at most %d", tenant, sum, dt, most)
			}
		}
	}
}

// burstRounds sends 200 calls at once, of 500 tokens against 10,000 in any window, for some tenants at the same time.
func burstRounds(t *testing.T, window time.Duration, rounds, together int) {
	s := startStack(t, windowPolicy(window))
	for round := 0; round < rounds; round += together {
		var all sync.WaitGroup
		for i := round; i < min(round+together, rounds); i++ {
			all.Go(func() {
				tenant := fmt.Sprint("tenant", i)
				c := call{tenant: tenant, output: 500 - inputOfHi, input: inputOfHi}
				admitted, refused := offer(t, s.proxy, c, 200, window/40, window*3/2)
				if refused < 100 || admitted < 5 {
					t.Errorf("%s: %d admitted, %d refused: the test does not test anything", tenant, admitted, refused)
				}
				if n := len(s.mock.events(tenant)); n != admitted {
					t.Errorf("%s: %d calls were answered 200, the provider saw %d", tenant, admitted, n)
				}
				checkWindow(t, s.mock, tenant, 10_000, window)
			})
		}
		all.Wait()
	}
}

// These two run alone: on a busy machine calls take long from test to mock, and the check gets blunt.

func TestBurstAgainstOneSecond(t *testing.T) { burstRounds(t, time.Second, 20, 5) }

func TestBurstAgainstTenSeconds(t *testing.T) { burstRounds(t, 10*time.Second, 20, 10) }

func TestBurstAgainstAMinute(t *testing.T) { t.Parallel(); burstRounds(t, time.Minute, 1, 1) }

// Prompts that are ten times denser than the estimate: what was underestimated while it was in flight is let through, and
// then nothing until that debt is gone.
func TestDensePrompts(t *testing.T) {
	t.Parallel()
	const window = 10 * time.Second
	s := startStack(t, windowPolicy(window))
	c := call{
		tenant: "dense", text: strings.Repeat("word ", 100), output: 50, input: 1000,
		headers: map[string]string{"x-mock-latency": "300ms"},
	}
	admitted, _ := offer(t, s.proxy, c, 200, 50*time.Millisecond, 13*time.Second)
	events := s.mock.events("dense")
	firstEnd := events[0].End
	for _, e := range events {
		firstEnd = min(firstEnd, e.End)
	}
	inFlight, after := 0, time.Duration(0)
	for _, e := range events {
		if e.Sent < firstEnd {
			inFlight++
		} else if after == 0 {
			after = time.Duration(e.At - firstEnd)
		}
	}
	// 2,500 at once are 16 calls of about 150 tokens each as estimated.
	if inFlight < 10 || inFlight > 17 {
		t.Errorf("%d calls before the first was settled", inFlight)
	}
	if debt := time.Duration(inFlight) * 1050 * window / 10_000; after > 0 && after < min(debt, window)-time.Second {
		t.Errorf("admitted again after %v, with %v worth of tokens used (%d calls in all)", after, debt, admitted)
	}
}
