// SPDX-License-Identifier: Apache-2.0

package envoy_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/envoy/envoytest"
)

// static is an Envoy that answers by itself, with filters before its router.
func static(filters string) []byte {
	return fmt.Appendf(nil, `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - name: here
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: here
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: hello}}}]}]}
          http_filters: [%s{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
`, filters)
}

func TestRun(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	before := runtime.NumGoroutine()
	p, err := envoy.Run(t.Context(), envoy.Options{Path: envoytest.Path(t), Bootstrap: static(""), Concurrency: 1})
	must(t, err)
	addr, err := p.Listener(t.Context(), "here")
	must(t, err)
	if got := get(t, "http://"+addr); got != "hello" {
		t.Errorf("got %q", got)
	}
	if _, err := p.Listener(t.Context(), "nowhere"); err == nil {
		t.Error("no error for a listener that is not there")
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := p.Stop(); err != nil || p.Wait() != nil {
		t.Errorf("stop again: %v", err)
	}
	clean(t)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines before, %d now", before, runtime.NumGoroutine())
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	p, err := envoy.Run(ctx, envoy.Options{Path: envoytest.Path(t), Bootstrap: static(""), Concurrency: 1})
	must(t, err)
	cancel()
	select {
	case <-p.Done():
	case <-time.After(5 * time.Second):
		t.Error("still there")
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	clean(t)
}

func TestRunSaysWhyNot(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := envoy.Run(t.Context(), envoy.Options{Path: envoytest.Path(t), Bootstrap: []byte("admin: {no_such_field: 1}")})
	if err == nil || !strings.Contains(err.Error(), "no_such_field") {
		t.Errorf("got %v, want what Envoy wrote", err)
	}
	clean(t)
	_, err = envoy.Run(t.Context(), envoy.Options{Path: envoytest.Path(t), Bootstrap: waiting, StartTimeout: time.Second})
	if err == nil || !strings.Contains(err.Error(), "/ready with 503") {
		t.Errorf("got %v, want that it is not ready", err)
	}
	clean(t)
	if _, err = envoy.Run(t.Context(), envoy.Options{Path: "/bin/false"}); err == nil {
		t.Error("no error for what is no Envoy")
	}
}

// waiting is an Envoy whose control plane is not there.
var waiting = func() []byte {
	b, err := envoy.Bootstrap(envoy.BootstrapOptions{NodeID: "n", XDSAddr: "127.0.0.1:1", WasmPath: "/weir-0123abcd.wasm"})
	if err != nil {
		panic(err)
	}
	return b
}()

func TestRunWarnsOfOtherVersions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\necho 'envoy  version: 0123abc/1.30.1/Clean'\n"), 0o700))
	log := new(envoytest.Log)
	_, err := envoy.Run(t.Context(), envoy.Options{Path: path, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err == nil || !strings.Contains(log.String(), "version=1.30.1 tested=1.40.0") {
		t.Errorf("got %v and %q", err, log)
	}
}

func TestBootstrapIsValid(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "bootstrap.yaml"))
	must(t, err)
	path := filepath.Join(t.TempDir(), "bootstrap.yaml")
	must(t, os.WriteFile(path, b, 0o600))
	out, err := exec.Command(envoytest.Path(t), "--mode", "validate", "--config-path", path).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return string(b)
}

// clean checks that no file is left.
func clean(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
