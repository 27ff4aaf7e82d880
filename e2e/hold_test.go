// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const holdPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai:
    upstream: "UPSTREAM"
    adapt: "off"
    models: {big: {rpm: 2, burst: 100%}, "*": {rpm: 1000}}
limits: {tenant: {default: {tpm: 10_000_000, in_flight: 20}}}
`

// A recorder is a provider that knows what it got.
type recorder struct {
	mu     sync.Mutex
	sums   map[[32]byte]int
	broken int // bodies that did not come to their end
}

func (p *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := sha256.New()
	_, err := io.Copy(h, r.Body)
	p.mu.Lock()
	if err != nil {
		p.broken++
	} else {
		p.sums[[32]byte(h.Sum(nil))]++
	}
	p.mu.Unlock()
	w.Header().Set("content-type", "application/json")
	_, _ = io.WriteString(w, `{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":5,"total_tokens":1005}}`)
}

func (p *recorder) got(body string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sums[sha256.Sum256([]byte(body))]
}

func (p *recorder) gotBroken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// pictured is a request as openai-python writes it: the picture, of so many bytes, before the model.
func pictured(bytes int, model string) string {
	return `{"messages":[{"role":"user","content":[{"type":"text","text":"What is this? \"model\":\"free\""},{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
		strings.Repeat("iVBORw0K", bytes/8) + `"}}]}],"model":"` + model + `","max_tokens":50}`
}

// sendLong sends a body, with its length or in chunks.
func sendLong(t *testing.T, url, body string, chunked bool) (status int, reason, answer string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var reader io.Reader = strings.NewReader(body)
	if chunked {
		reader = unsized{reader}
	}
	r, err := http.NewRequestWithContext(ctx, "POST", url, reader)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("content-type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Errorf("%d bytes: %v", len(body), err)
		return 0, "", ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header.Get("x-weir-reason"), string(b)
}

// In a real Envoy, a request with a picture before its model is held to the limit of that model, and reaches the provider whole. One
// that is longer than body.hold is refused with the reason, and one that names a second model at its end does not get there.
func TestModelBehindAPicture(t *testing.T) {
	t.Parallel()
	provider := &recorder{sums: map[[32]byte]int{}}
	up := httptest.NewServer(provider)
	defer up.Close()
	s := startStack(t, strings.ReplaceAll(holdPolicy, "UPSTREAM", up.URL), "--workers", "1")
	url := "http://" + s.proxy + "/openai/v1/chat/completions"

	var both sync.WaitGroup
	bodies := []string{pictured(3<<20, "big"), pictured(3<<20+800, "big")}
	for i, body := range bodies {
		both.Go(func() {
			if status, reason, answer := sendLong(t, url, body, i == 0); status != 200 {
				t.Errorf("answered %d, %s: %s", status, reason, answer)
			}
		})
	}
	both.Wait()
	for i, body := range bodies {
		if n := provider.got(body); n != 1 {
			t.Errorf("body %d came %d times as it was sent", i, n)
		}
	}
	for _, size := range []int{10, 3 << 20, 15 << 20} {
		if status, reason, answer := sendLong(t, url, pictured(size, "big"), size < 15<<20); status != 429 || reason != "limit_exceeded" {
			t.Errorf("beyond the model's limit: answered %d, %s: %.500s", status, reason, answer)
		}
	}
	free := pictured(15<<20, "free")
	if status, reason, answer := sendLong(t, url, free, true); status != 200 || provider.got(free) != 1 {
		t.Errorf("another model: answered %d, %s: %.500s", status, reason, answer)
	}
	for _, chunked := range []bool{true, false} {
		status, reason, answer := sendLong(t, url, pictured(17<<20, "free"), chunked)
		if status != 400 || reason != "unreadable_body" || !strings.Contains(answer, "or have body.hold raised") {
			t.Errorf("beyond body.hold, chunked %v: answered %d, %s: %.500s", chunked, status, reason, answer)
		}
	}
	first := fmt.Sprintf(`{"model":"free",%s`, pictured(40<<20, "free")[1:])
	if status, reason, answer := sendLong(t, url, first, false); status != 200 || provider.got(first) != 1 {
		t.Errorf("the model first: answered %d, %s: %.500s", status, reason, answer)
	}
	before, second := provider.gotBroken(), fmt.Sprintf(`{"model":"free",%s`, pictured(20<<20, "big")[1:])
	if status, reason, answer := sendLong(t, url, second, true); status != 400 || reason != "unreadable_body" || provider.got(second) != 0 {
		t.Errorf("two models: answered %d, %s: %.500s", status, reason, answer)
	}
	eventually(t, 5*time.Second, func() (bool, string) {
		return provider.gotBroken() == before+1, "the provider has not lost the request"
	})
	_, kept := get(t, "http://"+s.admin+"/stats?filter=^cluster.weir_openai.retry_or_shadow_abandoned$")
	if _, n, _ := strings.Cut(strings.TrimSpace(kept), ": "); n != "5" { // of each that has left none is kept to be sent again
		t.Errorf("not kept: %s", kept)
	}
	_, stats := get(t, "http://"+s.admin+"/stats?usedonly&filter=downstream_rq_too_large|weir_panics")
	if strings.TrimSpace(string(stats)) != "" {
		t.Errorf("Envoy itself has refused some, or a callback has failed: %s", stats)
	}
}
