// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func livePolicy(tpm int) string {
	return fmt.Sprintf(`
apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://MOCK"}
limits:
  tenant:
    default: {tpm: %d, burst: 100%%}
`, tpm)
}

// A limit changes under load: no stream is dropped, no counter starts anew, and each denial names one of the two limits.
func TestLiveChangeUnderLoad(t *testing.T) {
	t.Parallel()
	s := startStack(t, livePolicy(100_000))
	// 60,000 of 100,000 are used by tenant a.
	if got := send(t, s.proxy, call{tenant: "a", output: 60_000 - inputOfHi, input: inputOfHi, headers: map[string]string{"x-mock-body-bytes": "10"}}); got[200] != 1 {
		t.Fatal(got)
	}
	var stop atomic.Bool
	var load sync.WaitGroup
	var streams, others atomic.Int64
	for i := range 8 {
		load.Go(func() {
			for n := 0; !stop.Load(); n++ {
				c := call{tenant: fmt.Sprint("load", i, n), output: 50, stream: true, headers: map[string]string{"x-mock-chunks": "20", "x-mock-chunk-delay": "10ms"}}
				if body, ok := readAll(t, s.proxy, c); !ok || !strings.HasSuffix(body, "data: [DONE]\n\n") {
					t.Errorf("a stream was cut: %.200q … %.100q", body, tail(body, 100))
				}
				streams.Add(1)
			}
		})
		load.Go(func() {
			for !stop.Load() {
				resp, err := http.DefaultClient.Do(call{tenant: "a", output: 50_000}.request(s.proxy))
				if err != nil {
					t.Error(err)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				limit := resp.Header.Get("x-ratelimit-limit-tokens")
				switch {
				case resp.StatusCode == 429 && (limit == "100000" || limit == "70000" || limit == "80000"):
				case resp.StatusCode == 413: // 50,000 never fit into 40,000
				default:
					t.Errorf("status %d, limit %q", resp.StatusCode, limit)
				}
				others.Add(1)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	for _, tpm := range []int{70_000, 100_000, 40_000, 80_000, 100_000} {
		time.Sleep(200 * time.Millisecond)
		s.change(livePolicy(tpm))
	}
	stop.Store(true)
	load.Wait()
	if streams.Load() < 50 || others.Load() < 50 {
		t.Errorf("only %d streams and %d other calls: the test does not test anything", streams.Load(), others.Load())
	}
	// Still 60,000 used: 50,000 more do not fit.
	if got := send(t, s.proxy, call{tenant: "a", output: 50_000}); got[429] != 1 {
		t.Errorf("the counter started anew: %v", got)
	}
}

// With --mock nothing leaves the machine, not even to providers that come while it runs.
func TestMockStandsForEveryProvider(t *testing.T) {
	t.Parallel()
	real := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request has left") }))
	defer real.Close()
	s := startStack(t, `{apiVersion: weir/v1, providers: {openai: {upstream: "https://api.openai.com"}, search: {upstream: "`+real.URL+`", dialect: generic}}}`, "--mock")
	s.change(`{apiVersion: weir/v1, providers: {openai: {cluster: no_such}, renamed: {upstream: "` + real.URL + `", dialect: openai}}}`)
	for _, path := range []string{"/openai/v1/models", "/renamed/v1/models"} {
		if status, body := get(t, "http://"+s.proxy+path); status != 200 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// Envoy shows the filter's metrics with labels.
func TestMetricsHaveLabels(t *testing.T) {
	t.Parallel()
	s := startStack(t, livePolicy(10_000))
	send(t, s.proxy, call{tenant: "a", output: 5_000}, call{tenant: "a", output: 20_000})
	want := []string{
		`weir_requests_total{weir_decision="admit"} 1`, `weir_endings_total{weir_ending="complete"} 1`, `weir_charges_total{weir_source="usage"} 1`,
		`weir_requests_total{weir_decision="deny",weir_reason="request_too_large",weir_tier="tenant",weir_dimension="tpm"} 1`,
	}
	eventually(t, 5*time.Second, func() (bool, string) {
		_, body := get(t, "http://"+s.admin+"/stats/prometheus?usedonly&filter=weir_")
		for _, w := range want {
			if !strings.Contains(body, w+"\n") {
				return false, w + " is not in\n" + body
			}
		}
		return true, ""
	})
}

// readAll sends a call and reads its answer to the end.
func readAll(t testing.TB, proxy string, c call) (string, bool) {
	resp, err := http.DefaultClient.Do(c.request(proxy))
	if err != nil {
		t.Error(err)
		return "", false
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err == nil && resp.StatusCode == 200
}

// A bad policy is refused with its errors, and the old one serves.
func TestBadPolicyKeepsTheOldOne(t *testing.T) {
	t.Parallel()
	s := startStack(t, livePolicy(1000))
	replaceFile(t, s.policy, "apiVersion: weir/v1\nproviders:\n  openai: {upstream: ftp://x, models: {gpt-4o: {tpm: many}}}\nlimit: {}\n")
	eventually(t, 10*time.Second, func() (bool, string) {
		p := s.statusPage()
		return p.Problem != nil && strings.Contains(p.Problem.Message, ":3:") && strings.Contains(p.Problem.Message, "did you mean limits"), fmt.Sprintf("%+v", p)
	})
	if got := send(t, s.proxy, call{tenant: "a", output: 5000}); got[413] != 1 {
		t.Errorf("the old policy does not serve: %v", got)
	}
	if code, body := get(t, "http://"+s.status+"/readyz"); code != 200 {
		t.Errorf("/readyz says %d: %s", code, body)
	}
	s.change(livePolicy(10_000))
	if got := send(t, s.proxy, call{tenant: "a", output: 5000}); got[200] != 1 {
		t.Errorf("a good policy after a bad one is not taken: %v", got)
	}
}
