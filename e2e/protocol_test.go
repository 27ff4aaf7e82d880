// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
)

const openPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai:    {upstream: "http://MOCK"}
  anthropic: {upstream: "http://MOCK"}
  tool:      {upstream: "http://MOCK", dialect: generic}
limits:
  tenant:
    default: {tpm: 1_000_000_000, rpm: 1_000_000}
    small:   {tpm: 100}
`

// client speaks one version of HTTP.
func client(version int) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols), ExpectContinueTimeout: 5 * time.Second}
	if version == 2 {
		tr.Protocols.SetUnencryptedHTTP2(true)
	} else {
		tr.Protocols.SetHTTP1(true)
	}
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

// unsized hides the length of a body, so that it is sent in chunks.
type unsized struct{ io.Reader }

// Every way to send a request works, is decided once, and reaches the provider as it was sent.
func TestProtocols(t *testing.T) {
	t.Parallel()
	s := startStack(t, openPolicy)
	body := `{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":"` + strings.Repeat("hello ", 3000) + `"}]}`
	hash := sha256.Sum256([]byte(body))
	for _, version := range []int{1, 2} {
		c := client(version)
		for name, change := range map[string]func(r *http.Request){
			"with a length": func(*http.Request) {},
			"in chunks":     func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(unsized{strings.NewReader(body)}), -1 },
			"with trailers": func(r *http.Request) {
				r.Body, r.ContentLength = io.NopCloser(unsized{strings.NewReader(body)}), -1
				r.Trailer = http.Header{"X-Sum": {"1"}}
			},
			"with expect": func(r *http.Request) { r.Header.Set("expect", "100-continue") },
		} {
			t.Run(fmt.Sprintf("HTTP %d %s", version, name), func(t *testing.T) {
				tag := strings.ReplaceAll(t.Name(), "/", " ")
				r, _ := http.NewRequest(http.MethodPost, "http://"+s.proxy+"/openai/v1/chat/completions", strings.NewReader(body))
				r.Header.Set("content-type", "application/json")
				r.Header.Set("x-mock-tag", tag)
				change(r)
				resp, err := c.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				answer, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != 200 || resp.ProtoMajor != version {
					t.Fatalf("%s %d: %s", resp.Proto, resp.StatusCode, answer)
				}
				events := s.mock.events(tag)
				if len(events) != 1 || events[0].BodyHash != hex.EncodeToString(hash[:]) {
					t.Errorf("the provider got %+v", events)
				}
			})
		}
		c.CloseIdleConnections()
	}
}

// A body in brotli counts as what is in it, however short it is, and reaches the provider as it was sent.
func TestBrotliBody(t *testing.T) {
	t.Parallel()
	s := startStack(t, openPolicy)
	for name, row := range map[string]struct {
		words, status int
		reason        string
	}{"small": {10, 200, ""}, "large": {3000, 413, "request_too_large"}} {
		var body bytes.Buffer
		w := brotli.NewWriter(&body)
		fmt.Fprintf(w, `{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":"%s"}]}`, strings.Repeat("hello ", row.words))
		_ = w.Close()
		packed := body.Bytes()
		tag := "brotli " + name
		r, _ := http.NewRequest(http.MethodPost, "http://"+s.proxy+"/openai/v1/chat/completions", &body)
		for k, v := range map[string]string{"content-type": "application/json", "content-encoding": "br", "x-tenant": "small", "x-mock-tag": tag} {
			r.Header.Set(k, v)
		}
		resp, err := client(1).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != row.status || resp.Header.Get("x-weir-reason") != row.reason {
			t.Errorf("%s, %d bytes: %d %q: %s", name, len(packed), resp.StatusCode, resp.Header.Get("x-weir-reason"), answer)
		}
		hash := sha256.Sum256(packed)
		if events := s.mock.events(tag); row.status == 200 && (len(events) != 1 || events[0].BodyHash != hex.EncodeToString(hash[:])) {
			t.Errorf("%s: the provider got %+v", name, events)
		}
	}
}

// Requests without a body, and the answers to them.
func TestWithoutBody(t *testing.T) {
	t.Parallel()
	s := startStack(t, openPolicy)
	for _, version := range []int{1, 2} {
		c := client(version)
		for _, row := range []struct {
			method, path string
			status       int
		}{
			{"GET", "/openai/v1/models", 200}, {"HEAD", "/openai/v1/models", 200}, {"OPTIONS", "/openai/v1/chat/completions", 0},
			{"GET", "/tool/weather?in=Lisbon", 200}, {"GET", "/nowhere", 404}, {"HEAD", "/nowhere", 404},
			{"GET", "/openai/v1/unheard-of", 403}, {"GET", "/openai/v1/models/..%2F..%2Fadmin", 400}, {"DELETE", "/tool/x", 200},
		} {
			r, _ := http.NewRequest(row.method, "http://"+s.proxy+row.path, nil)
			resp, err := c.Do(r)
			if err != nil {
				t.Fatalf("%s %s: %v", row.method, row.path, err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if row.status != 0 && resp.StatusCode != row.status || row.status == 0 && resp.StatusCode >= 500 {
				t.Errorf("HTTP %d %s %s: %d %s", version, row.method, row.path, resp.StatusCode, b)
			}
			if row.status == 404 && row.method == "GET" && !strings.Contains(string(b), "/openai/ ") {
				t.Errorf("the prefixes are not listed: %s", b)
			}
		}
		c.CloseIdleConnections()
	}
}

// A websocket is refused by an LLM provider, for nobody could count what passes through it.
func TestWebsocket(t *testing.T) {
	t.Parallel()
	s := startStack(t, openPolicy)
	r, _ := http.NewRequest("GET", "http://"+s.proxy+"/openai/v1/realtime?model=x", nil)
	for k, v := range map[string]string{"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-version": "13"} {
		r.Header.Set(k, v)
	}
	resp, err := client(1).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 403 || resp.Header.Get("x-weir-reason") != "not_metered" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

// Identity headers do not reach the provider, forged x-weir headers neither; doubled ones are refused; credentials pass.
func TestHeadersInEnvoy(t *testing.T) {
	t.Parallel()
	s := startStack(t, openPolicy)
	for _, version := range []int{1, 2} {
		c := client(version)
		tag := fmt.Sprint("headers", version)
		r := call{tenant: tag, output: 5, headers: map[string]string{"x-user": "u", "x-weir-decision": "admit", "x-envoy-max-retries": "3", "x-envoy-retry-on": "5xx", "authorization": "Bearer sk", "x-mock-status": "500"}}.request(s.proxy)
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		events := s.mock.events(tag)
		if len(events) != 1 {
			t.Fatalf("HTTP %d: sent %d times", version, len(events))
		}
		for _, name := range events[0].Headers {
			if name == "x-tenant" || name == "x-user" || strings.HasPrefix(name, "x-weir") || name == "x-envoy-retry-on" {
				t.Errorf("HTTP %d: %s reached the provider", version, name)
			}
		}
		if !strings.Contains(strings.Join(events[0].Headers, " "), "authorization") {
			t.Errorf("the credential did not reach the provider: %v", events[0].Headers)
		}
		r = call{tenant: "x", output: 5}.request(s.proxy)
		r.Header["X-Tenant"] = []string{"a", "b"}
		if resp, err = c.Do(r); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 400 || resp.Header.Get("x-weir-reason") != "bad_identity" {
			t.Errorf("HTTP %d: two values of an identity header: %d %v", version, resp.StatusCode, resp.Header)
		}
		c.CloseIdleConnections()
	}
}

// rss is the memory of Envoy in bytes.
func (s *stack) rss() int64 {
	s.t.Helper()
	_, body := get(s.t, "http://"+s.admin+"/memory")
	_, rest, _ := strings.Cut(body, `"allocated": "`)
	n, _, _ := strings.Cut(rest, `"`)
	v, err := strconv.ParseInt(n, 10, 64)
	if err != nil {
		s.t.Fatalf("%v: %s", err, body)
	}
	return v
}

// A body of 50 MB streams through: it arrives whole, and Envoy's memory stays at the cap. What is too large is the
// provider's to say.
func TestLargeBody(t *testing.T) {
	if _, err := os.Stat("/proc/self/statm"); err != nil {
		t.Fatal(err)
	}
	s := startStack(t, openPolicy)
	const size = 50 << 20
	body := append([]byte(`{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":"`), bytes.Repeat([]byte("a"), size)...)
	body = append(body, `"}]}`...)
	hash := sha256.Sum256(body)
	before := s.rss()
	peak := before
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, chunked := range []bool{false, true} {
			tag := fmt.Sprint("large", chunked)
			r := call{tenant: tag, output: 5}.request(s.proxy)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			if chunked {
				r.Body, r.ContentLength = io.NopCloser(unsized{bytes.NewReader(body)}), -1
			}
			resp, err := client(1).Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("chunked %v: status %d", chunked, resp.StatusCode)
			}
			if e := s.mock.events(tag); len(e) != 1 || e[0].BodyBytes != int64(len(body)) || e[0].BodyHash != hex.EncodeToString(hash[:]) {
				t.Errorf("chunked %v: the provider got %+v", chunked, e)
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(5 * time.Millisecond):
			peak = max(peak, s.rss())
		}
	}
	if grown := peak - before; grown > 12<<20 {
		t.Errorf("Envoy's memory grew by %d MiB", grown>>20)
	}
}

// The first byte of a stream is not held up, whatever the filter reads of it.
func TestFirstByteIsNotDelayed(t *testing.T) {
	s := startStack(t, openPolicy)
	const latency = 100 * time.Millisecond
	first := func(addr, path string) time.Duration {
		best := time.Hour
		for range 15 {
			r := call{tenant: "a", output: 50, stream: true, headers: map[string]string{"x-mock-latency": latency.String(), "x-mock-chunk-delay": "20ms", "x-mock-chunks": "5"}}.request(addr)
			r.URL.Path = path
			sent := time.Now()
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(sent))
			resp.Body.Close()
		}
		return best
	}
	direct, through := first(s.mock.addr, "/v1/chat/completions"), first(s.proxy, "/openai/v1/chat/completions")
	if through-direct > 15*time.Millisecond { // held until the second chunk it would be 20 ms; the rest is a busy machine's
		t.Errorf("the first byte comes after %v, directly after %v", through, direct)
	}
}
