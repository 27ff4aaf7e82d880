// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func TestBootstrap(t *testing.T) {
	got, err := Bootstrap(BootstrapOptions{
		NodeID:  "1e5", // a name that looks like a number stays a name
		XDSAddr: "weir.weir-system.svc:18000", WasmPath: "/opt/weir/weir-0123abcd.wasm", CAFile: "/etc/pki/tls/certs/ca-bundle.crt",
	})
	must(t, err)
	golden := filepath.Join("testdata", "bootstrap.yaml")
	if *update {
		must(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if string(got) != string(want) {
		t.Errorf("differs from %s: look what changed, then run go test ./envoy -update\n%s", golden, got)
	}
}

// With a client certificate, with a token, and the files that Envoy watches.
func TestBootstrapAccess(t *testing.T) {
	var got []byte
	for _, o := range []BootstrapOptions{
		{XDSAddr: "weir.weir-system.svc:18000", Access: Access{TLSDir: "/etc/weir/tls"}},
		{XDSAddr: "10.0.0.5:18000", Access: Access{TLSDir: "/etc/weir/tls", Token: "0123456789abcdef0123456789abcdef"}},
	} {
		o.NodeID, o.WasmPath = "egress-1", "/opt/weir/weir-0123abcd.wasm"
		b, err := Bootstrap(o)
		must(t, err)
		got = append(append(got, "---\n"...), b...)
	}
	files, err := Access{TLSDir: "/etc/weir/tls"}.Secrets()
	must(t, err)
	for _, name := range []string{caSecret, certSecret} {
		got = append(append(got, "--- # "+name+"\n"...), files[name]...)
	}
	golden := filepath.Join("testdata", "access.yaml")
	if *update {
		must(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if string(got) != string(want) {
		t.Errorf("differs from %s: look what changed, then run go test ./envoy -update\n%s", golden, got)
	}
	if files, err := (Access{TLSDir: "/x", Token: "t"}).Secrets(); err != nil || len(files) != 1 {
		t.Errorf("with a token there is no certificate of its own: %v %v", files, err)
	}
}

// Metrics and readiness for others, and nothing else of the admin interface.
func TestBootstrapMetrics(t *testing.T) {
	o := BootstrapOptions{NodeID: "n", XDSAddr: "127.0.0.1:18000", WasmPath: "/weir-0123abcd.wasm", Admin: "127.0.0.1:9901", Metrics: "0.0.0.0:9902"}
	b, err := bootstrap(o)
	must(t, err)
	l := b.StaticResources.Listeners
	if len(l) != 1 || l[0].Address.GetSocketAddress().GetPortValue() != 9902 {
		t.Fatalf("listeners: %v", l)
	}
	out, err := Bootstrap(o)
	must(t, err)
	if n := strings.Count(string(out), "cluster: weir_admin"); n != len(readable) {
		t.Errorf("%d routes to the admin interface:\n%s", n, out)
	}
}

func TestBootstrapErrors(t *testing.T) {
	good := BootstrapOptions{NodeID: "n", XDSAddr: "127.0.0.1:18000", WasmPath: "/weir-0123abcd.wasm"}
	if _, err := Bootstrap(good); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*BootstrapOptions){
		"node id":                   func(o *BootstrapOptions) { o.NodeID = "" },
		"path of the filter":        func(o *BootstrapOptions) { o.WasmPath = "" },
		"is no host:port":           func(o *BootstrapOptions) { o.XDSAddr = "localhost" },
		"write host:port":           func(o *BootstrapOptions) { o.XDSAddr = ":18000" },
		"has no port number":        func(o *BootstrapOptions) { o.XDSAddr = "localhost:http" },
		"admin: \"x\" is no host":   func(o *BootstrapOptions) { o.Admin = "x" },
		"metrics: \"x\" is no host": func(o *BootstrapOptions) { o.Metrics, o.Admin = "x", "127.0.0.1:9901" },
		"needs a port that is":      func(o *BootstrapOptions) { o.Metrics = "127.0.0.1:9902" },
		"unknown form \"other\"":    func(o *BootstrapOptions) { o.Form = "other" },
	} {
		o := good
		change(&o)
		if _, err := Bootstrap(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestAnyIsStable(t *testing.T) {
	// The options of a cluster are a map, and a map of one entry tells nothing; metadata has two.
	first, err := Any(Metadata("a", "b"))
	must(t, err)
	for range 100 {
		if again, err := Any(Metadata("a", "b")); err != nil || string(again.Value) != string(first.Value) {
			t.Fatalf("other bytes for the same message (%v)", err)
		}
	}
}
