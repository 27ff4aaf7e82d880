// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const waitPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  tool: {upstream: "http://MOCK", dialect: generic, models: {"*": {rps: 5, burst: 2, window: continuous}}}
  openai: {upstream: "http://MOCK", models: {"*": {rps: 2, burst: 100%}}}
classes:
  critical: {priority: 2, on_limit: queue, wait: 30s}
  normal: {priority: 1, on_limit: queue, wait: 20s}
  hasty: {priority: 0.5, on_limit: queue, wait: 300ms}
`

func ask(method, url string, body string, headers ...string) (int, http.Header, error) {
	return askWithin(context.Background(), method, url, body, headers...)
}

func askWithin(ctx context.Context, method, url, body string, headers ...string) (int, http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("content-type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header, err
}

// In a real Envoy a chat waits with its body and leaves whole, over both protocols; one that may not wait so long is told in
// time; a caller that leaves is never sent.
func TestWaiting(t *testing.T) {
	t.Parallel()
	s := startStack(t, waitPolicy, "--workers", "2")
	body := `{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":"` + strings.Repeat("hello ", 5000) + `"}]}`
	url := "http://" + s.proxy + "/openai/v1/chat/completions"
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if status, h, err := ask("POST", url, body, "x-priority", "normal", "x-mock-tag", "normal"); status != 200 || err != nil {
				t.Errorf("%d %v %v", status, h, err)
			}
		})
	}
	time.Sleep(200 * time.Millisecond)
	began := time.Now()
	status, h, err := ask("POST", url, body, "x-priority", "hasty")
	if took := time.Since(began); status != 429 || h.Get("x-weir-reason") != "queue_timeout" || err != nil || took > 900*time.Millisecond {
		t.Errorf("hasty: %d after %v, %v %v", status, took, h, err)
	}
	for i := range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(20+i)*time.Millisecond)
		_, _, _ = askWithin(ctx, "POST", url, body, "x-priority", "normal", "x-mock-tag", "gone")
		cancel()
	}
	long := `{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":"` + strings.Repeat("hello ", 1<<20) + `"}]}`
	if status, h, err := ask("POST", url, long, "x-priority", "normal", "x-mock-tag", "long"); status != 200 || err != nil {
		t.Errorf("a body of six megabytes that has to wait: %d %v %v", status, h, err)
	}
	if ev := s.mock.events("long"); len(ev) != 1 || ev[0].Input < 1<<19 {
		t.Errorf("of a body of six megabytes came %v", ev)
	}
	wg.Wait()
	if n := len(s.mock.events("normal")); n != 8 {
		t.Errorf("%d of 8 were sent", n)
	}
	if n := len(s.mock.events("gone")); n != 0 {
		t.Errorf("%d of those that left were sent", n)
	}
	eventually(t, 5*time.Second, func() (bool, string) {
		_, stats := get(t, "http://"+s.admin+"/stats?filter=rq_active|panics|vm_reload_success")
		return strings.Contains(stats, "http.weir.downstream_rq_active: 0") && !strings.Contains(stats, "weir_panics"), stats
	})
	ev := s.mock.events("normal")
	for i := 2; i < len(ev); i++ {
		if gap := time.Duration(ev[i].At - ev[i-2].At); gap < 980*time.Millisecond {
			t.Errorf("three calls within %v, the limit is two a second", gap)
		}
	}
}
