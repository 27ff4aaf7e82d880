// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/envoy/envoytest"
)

// TestRealEnvoyRejectsAFilterThatIsNotThere pushes the path of a file that does not exist.
func TestRealEnvoyRejectsAFilterThatIsNotThere(t *testing.T) {
	s := New(Options{})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	b, err := envoy.Bootstrap(envoy.BootstrapOptions{NodeID: "n", XDSAddr: addr, WasmPath: envoytest.Plugin(t)})
	must(t, err)
	p := envoytest.Run(t, b)
	listener, err := p.Listener(t.Context(), translate.ListenerName)
	must(t, err)
	config := answeredBy(t, listener)
	if config == "" {
		t.Fatal("the filter has not seen the request")
	}

	s.Update(func(n Node) (*translate.Set, error) {
		n.Wasm = "/nowhere/weir-0123abcd.wasm"
		return build(limited(1))(n)
	})
	nodes := eventually(t, s, "rejected", func(n []Status) bool { return find(n[0], "filter").Rejected() })
	if nack := find(nodes[0], "filter").NACK; !strings.Contains(nack.Message, "/nowhere/weir-0123abcd.wasm") {
		t.Errorf("got %q", nack.Message)
	}
	if got := answeredBy(t, listener); got != config {
		t.Errorf("answered by configuration %q, want still %q", got, config)
	}
	s.Update(build(limited(2)))
	eventually(t, s, "on a good one", policies("n="+versionOf(t, limited(2))))
	if n := s.NACKs()["filter"]; n != 1 {
		t.Errorf("rejected %d times, want once", n)
	}
}

// answeredBy sends a request and gives the hash of the configuration that the filter met it with.
func answeredBy(t *testing.T, listener string) string {
	t.Helper()
	resp, err := http.Get("http://" + listener + "/tools/x")
	must(t, err)
	must(t, resp.Body.Close())
	return resp.Header.Get("x-standin-config")
}

// TestRealEnvoyIsToldWhyItIsRefused starts an Envoy that does not say which filter it has.
func TestRealEnvoyIsToldWhyItIsRefused(t *testing.T) {
	s := New(Options{})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	b, err := envoy.Bootstrap(envoy.BootstrapOptions{NodeID: "n", XDSAddr: addr, WasmPath: "/opt/weir/filter.wasm"})
	must(t, err)
	log := new(envoytest.Log)
	p, err := envoy.Start(t.Context(), envoy.Options{Path: envoytest.Path(t), Bootstrap: b, Concurrency: 1, Log: log})
	must(t, err)
	defer p.Stop()
	const why = "its name has to be weir-<first 8 digits of its sha256>.wasm"
	eventually(t, s, "refused", func(n []Status) bool {
		return len(n) == 1 && strings.Contains(n[0].Refused, why) && strings.Contains(log.String(), why)
	})
	if _, err := p.Listener(t.Context(), translate.ListenerName); err == nil {
		t.Error("it listens")
	}
}

// TestRealEnvoyTakesShares pushes shares to a real Envoy while requests pass: it takes each, the policy's filter stays as it is, and
// no request meets the shares.
func TestRealEnvoyTakesShares(t *testing.T) {
	s := New(Options{})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	b, err := envoy.Bootstrap(envoy.BootstrapOptions{NodeID: "n", XDSAddr: addr, WasmPath: envoytest.Plugin(t)})
	must(t, err)
	p := envoytest.Run(t, b)
	listener, err := p.Listener(t.Context(), translate.ListenerName)
	must(t, err)
	config, slowest := answeredBy(t, listener), time.Duration(0)
	for i := range 20 {
		before := find(eventually(t, s, "there", func(n []Status) bool { return len(n) == 1 })[0], "shares").Acked
		at := time.Now()
		s.Push("n", fmt.Appendf(nil, "w\x01s%d", i))
		eventually(t, s, "taken", func(n []Status) bool {
			st := find(n[0], "shares")
			return st.Acked == st.Sent && st.Acked != before
		})
		slowest = max(slowest, time.Since(at))
		resp, err := http.Get("http://" + listener + "/tools/x")
		must(t, err)
		must(t, resp.Body.Close())
		if got := resp.Header.Values("x-standin-config"); len(got) != 1 || got[0] != config {
			t.Fatalf("after push %d a request met %q, want %q", i, got, config)
		}
	}
	t.Logf("slowest of 20 pushes: %v", slowest)
	if n := s.NACKs(); len(n) > 0 {
		t.Errorf("rejected: %v", n)
	}
}
