// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
)

// soakAccess has a line for each request: by its tag it meets what the callers and the provider have written down.
const soakAccess = `
          access_log:
          - name: envoy.access_loggers.file
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
              path: FILE
              log_format:
                text_format_source:
                  inline_string: "%REQ(X-MOCK-TAG)%\t%RESPONSE_CODE%\t%RESPONSE_CODE_DETAILS%\t%FILTER_STATE(wasm.weir.decision:PLAIN)%\t%FILTER_STATE(wasm.weir.input:PLAIN)%\t%FILTER_STATE(wasm.weir.output:PLAIN)%\t%FILTER_STATE(wasm.weir.charged_input:PLAIN)%\t%FILTER_STATE(wasm.weir.charged_output:PLAIN)%\t%FILTER_STATE(wasm.weir.ending:PLAIN)%\t%FILTER_STATE(wasm.weir.source:PLAIN)%\t%FILTER_STATE(wasm.weir.attempt:PLAIN)%\n"`

// boot starts the Envoy, through a script that says which process it is.
func (s *soak) boot() {
	s.t.Helper()
	dir := s.t.TempDir()
	path, err := envoy.Find()
	if err != nil {
		s.t.Fatal(err)
	}
	if path, err = filepath.Abs(path); err != nil {
		s.t.Fatal(err)
	}
	pid, script := filepath.Join(dir, "pid"), filepath.Join(dir, "envoy")
	s.access = filepath.Join(dir, "access.log")
	text := fmt.Sprintf("#!/bin/sh\necho $$ > '%s'\nexec '%s' \"$@\"\n", pid, path)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
	bootstrap := run(s.t, "bootstrap", "--policy", s.policy, "--node", "e2e", "--xds", s.xds, "--control", s.reports.addr, "--wasm", s.wasm, "--form", "whole", "--listen", "127.0.0.1:0")
	with := strings.Replace(bootstrap, "          stat_prefix: weir\n", "          stat_prefix: weir"+strings.Replace(soakAccess, "FILE", s.access, 1)+"\n", 1)
	if with == bootstrap {
		s.t.Fatal("the bootstrap has changed")
	}
	s.log = new(output)
	s.envoy, err = envoy.Run(context.Background(), envoy.Options{Path: script, Bootstrap: []byte(with), Concurrency: 2, Log: s.log, StartTimeout: startTimeout})
	if err != nil {
		s.t.Fatalf("%v\n%s", err, tail(s.log.String(), 3000))
	}
	s.t.Cleanup(func() {
		_ = s.envoy.Stop()
		if s.t.Failed() {
			s.t.Logf("Envoy wrote:\n%s", tail(s.log.String(), 4000))
		}
	})
	if s.proxy, err = s.envoy.Listener(context.Background(), "weir"); err != nil {
		s.t.Fatal(err)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		s.t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.envoyProc, _ = os.FindProcess(n)
}

// wildAnswers are what the provider of nonsense makes its nonsense of.
var wildAnswers = []string{
	`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"word"},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":1,"total_tokens":9}}`,
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n",
	`{"error":{"message":"Rate limit reached. Please try again in 6ms.","type":"tokens","code":"rate_limit_exceeded"}}`,
	`[{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.01s"}]}}]`,
}

// startWild starts a provider whose answers, statuses and headers nobody would expect.
func startWild(t *testing.T, seed uint64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	shared := rand.New(rand.NewPCG(seed, 1<<41))
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		r := rand.New(rand.NewPCG(shared.Uint64(), 0))
		mu.Unlock()
		_, _ = io.Copy(io.Discard, q.Body)
		types := []string{"application/json", "text/event-stream", "text/event-stream; charset=utf-8", "text/html", ""}
		w.Header().Set("content-type", types[r.IntN(len(types))])
		for _, name := range []string{"retry-after", "x-ratelimit-reset-tokens", "content-encoding", "x-ratelimit-limit-requests"} {
			if r.IntN(6) == 0 {
				w.Header().Set(name, []string{"0", "-1", "1e999", "gzip", "6ms", "99999999999999999999", "br", "x"}[r.IntN(8)])
			}
		}
		w.WriteHeader([]int{200, 200, 200, 200, 404, 429, 500, 503, 529}[r.IntN(9)])
		b := mutate(r, []byte(strings.Repeat(wildAnswers[r.IntN(len(wildAnswers))], 1+r.IntN(3))))
		for len(b) > 0 {
			n := min(1+r.IntN(200), len(b))
			if _, err := w.Write(b[:n]); err != nil {
				return
			}
			if r.IntN(3) == 0 {
				_ = http.NewResponseController(w).Flush()
			}
			if b = b[n:]; r.IntN(200) == 0 {
				panic(http.ErrAbortHandler)
			}
		}
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	return l.Addr().String()
}

// mutate spoils bytes: here one more, there one less, a part twice, the end gone, a number without an end.
func mutate(r *rand.Rand, b []byte) []byte {
	for range r.IntN(5) {
		at := r.IntN(len(b) + 1)
		switch r.IntN(6) {
		case 0:
			b = append(b[:at:at], append([]byte{byte(r.IntN(256))}, b[at:]...)...)
		case 1:
			b = append(b[:at:at], b[min(at+1+r.IntN(5), len(b)):]...)
		case 2:
			b = append(b[:at:at], append([]byte(strings.Repeat(`[{"a":`, 1+r.IntN(2000))), b[at:]...)...)
		case 3:
			b = b[:at:at]
		case 4:
			b = append(b[:at:at], append([]byte(strings.Repeat("9", 1+r.IntN(400))), b[at:]...)...)
		case 5:
			b = append(b, b[at:]...)
		}
	}
	return b
}
