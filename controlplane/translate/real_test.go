// SPDX-License-Identifier: Apache-2.0

package translate_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/controlplane/xds"
	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/envoy/envoytest"
	"github.com/weirproxy/weir/policy"
)

// TestRealEnvoy gives each golden set to a real Envoy, and then sends requests to upstreams behind TLS with good and bad
// certificates.
func TestRealEnvoy(t *testing.T) {
	a := newAuthority(t)
	s := xds.New(xds.Options{})
	all := cases(t)
	for name, in := range all {
		in.CAFile = a.file // the file of the case is not on this machine
		all[name] = in
	}
	p := envoytest.Run(t, bootstrap(t, s, all["one"]))
	for name, in := range all {
		accept(t, s, name, in)
	}
	tools := map[string]string{
		"name":       "https://localhost:" + a.serve(t, x509.Certificate{DNSNames: []string{"localhost"}}),
		"address":    "https://127.0.0.1:" + a.serve(t, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}),
		"other-name": "https://localhost:" + a.serve(t, x509.Certificate{DNSNames: []string{"example.com"}}),
		"other-host": "https://127.0.0.1:" + a.serve(t, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 2)}}),
		"stranger":   "https://localhost:" + newAuthority(t).serve(t, x509.Certificate{DNSNames: []string{"localhost"}}),
	}
	spec := &policy.Spec{APIVersion: policy.APIVersion, Providers: map[string]policy.ProviderSpec{}}
	for name, upstream := range tools {
		spec.Providers[name] = policy.ProviderSpec{Upstream: upstream, Dialect: "generic"}
	}
	accept(t, s, "certificates", translate.Input{Spec: spec, CAFile: a.file})
	addr, err := p.Listener(t.Context(), translate.ListenerName)
	must(t, err)
	for name := range tools {
		want := "503" // upstream connect error
		if name == "name" || name == "address" {
			want = "200 HTTP/2.0 " + strings.TrimPrefix(tools[name], "https://")
		}
		if got := get(t, "http://"+addr+"/"+name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	// A websocket, to the upstream that speaks HTTP/2 otherwise.
	q, err := http.NewRequest(http.MethodGet, "http://"+addr+"/name", http.NoBody)
	must(t, err)
	q.Header.Set("Connection", "Upgrade")
	q.Header.Set("Upgrade", "websocket")
	resp, err := http.DefaultClient.Do(q)
	must(t, err)
	must(t, resp.Body.Close())
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("websocket: got %d", resp.StatusCode)
	}
}

// bootstrap serves s, with something to begin with, and gives what an Envoy is started with.
func bootstrap(t *testing.T, s *xds.Server, in translate.Input) []byte {
	t.Helper()
	update(s, in)
	addr := serve(t, s, "127.0.0.1:0")
	b, err := envoy.Bootstrap(envoy.BootstrapOptions{NodeID: "n", XDSAddr: addr, WasmPath: envoytest.Plugin(t)})
	must(t, err)
	return b
}

// serve serves s until the test ends, and gives the address.
func serve(t *testing.T, s *xds.Server, addr string) string {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); must(t, <-done) })
	return l.Addr().String()
}

func update(s *xds.Server, in translate.Input) {
	in.Listen = "127.0.0.1:0"
	s.Update(func(n xds.Node) (*translate.Set, error) {
		in.Wasm = n.Wasm
		return translate.Resources(in)
	})
}

// accept sends a set to the Envoy and waits until it has accepted all of it.
func accept(t *testing.T, s *xds.Server, name string, in translate.Input) {
	t.Helper()
	update(s, in)
	b, err := policy.Encode(in.Spec)
	must(t, err)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		n := s.Nodes()[0]
		settled := n.Policy == translate.Version(b) && n.Problem == ""
		for _, typ := range n.Types {
			if typ.NACK != nil {
				t.Fatalf("%s: %s rejected: %s", name, typ.Name, typ.NACK.Message)
			}
			settled = settled && typ.Acked == typ.Sent
		}
		if settled {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not accepted: %+v", name, n)
		}
	}
}

// TestFragments starts an Envoy made of the pieces, without any control plane, and later the control plane. How long the start
// takes is how long the filter takes to compile; without a default configuration it would be 15 s, and the answer 500.
func TestFragments(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	defer up.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close()) // the address is known, and nobody is there
	in := translate.Input{Spec: tools(up.URL + "/base"), Listen: "127.0.0.1:0", Wasm: envoytest.Plugin(t)}
	pieces, err := translate.Fragments(translate.FragmentInput{Input: in, XDS: l.Addr().String()})
	must(t, err)
	b, err := pieces.Bootstrap()
	must(t, err)
	began := time.Now()
	p := envoytest.Run(t, b)
	addr, err := p.Listener(t.Context(), translate.ListenerName)
	must(t, err)
	alone := config(t, "http://"+addr+"/tools/x", "/base/x")
	t.Logf("served after %v", time.Since(began))

	s := xds.New(xds.Options{})
	serve(t, s, l.Addr().String())
	in.Spec.Mode = policy.Shadow
	update(s, in)
	began = time.Now()
	for config(t, "http://"+addr+"/tools/x", "/base/x") == alone {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("still the default configuration: %+v", s.Nodes())
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("a newer policy applied %v after the control plane came", time.Since(began))
	if n := s.Nodes()[0]; n.ID != "weir" || len(n.Types) != 1 || n.Types[0].Name != "filter" {
		t.Errorf("got %+v", n)
	}
}

func tools(upstream string) *policy.Spec {
	return &policy.Spec{APIVersion: policy.APIVersion, Providers: map[string]policy.ProviderSpec{
		"tools": {Upstream: upstream, Dialect: "generic"},
	}}
}

// config gives the hash of the configuration by which a request is answered, with a certain body.
func config(t *testing.T, url, want string) string {
	t.Helper()
	resp, err := http.Get(url)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	hash := resp.Header.Get("x-standin-config")
	if string(body) != want || hash == "" {
		t.Fatalf("got %d %q %v, want it through the filter", resp.StatusCode, body, resp.Header)
	}
	return hash
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return fmt.Sprintf("%d %s", resp.StatusCode, b)
}
