// SPDX-License-Identifier: Apache-2.0

package translate_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/policy"
)

var write = flag.Bool("update", false, "write the golden files, and remove those that nothing writes")

// TestGolden translates testdata/<case>.in.json and compares with testdata/<case>.out.yaml, what an Envoy of the ADS form
// gets, and <case>.fragment.yaml, the pieces.
func TestGolden(t *testing.T) {
	written := map[string]bool{}
	for name, in := range cases(t) {
		t.Run(name, func(t *testing.T) {
			s, err := translate.Resources(in)
			must(t, err)
			golden(t, written, name+".out.yaml", setYAML(t, s))
			p, err := translate.Fragments(translate.FragmentInput{Input: in, XDS: "weir.weir-system.svc:18000", NodeID: "gateway"})
			must(t, err)
			b, err := p.YAML()
			must(t, err)
			golden(t, written, name+".fragment.yaml", b)
		})
	}
	p, err := translate.Fragments(translate.FragmentInput{
		Input: cases(t)["one"], XDS: "weir.weir-system.svc:18000", NodeID: "gateway",
		Access: envoy.Access{TLSDir: "/etc/weir/tls", Token: "0123456789abcdef0123456789abcdef"},
	})
	must(t, err)
	b, err := p.YAML()
	must(t, err)
	golden(t, written, "access.fragment.yaml", b)
	all, err := filepath.Glob("testdata/*.yaml")
	must(t, err)
	for _, path := range all {
		if written[filepath.Base(path)] {
			continue
		}
		if !*write {
			t.Errorf("nothing writes %s: run go test ./controlplane/translate -update", path)
			continue
		}
		must(t, os.Remove(path))
	}
}

func golden(t *testing.T, written map[string]bool, name string, got []byte) {
	t.Helper()
	written[name] = true
	path := filepath.Join("testdata", name)
	if *write {
		must(t, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s: run go test ./controlplane/translate -update, and look what changed\n%s", path, difference(got, want))
	}
}

// difference shows the first lines that differ.
func difference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d:\n got %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(g), len(w))
}

// cases reads testdata.
func cases(t *testing.T) map[string]translate.Input {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.in.json")
	must(t, err)
	all := map[string]translate.Input{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		must(t, err)
		var v struct {
			Listen   string          `json:"listen"`
			Wasm     string          `json:"wasm"`
			CAFile   string          `json:"ca_file"`
			Upstream string          `json:"upstream"`
			Policy   json.RawMessage `json:"policy"`
		}
		must(t, json.Unmarshal(b, &v))
		spec, err := policy.Decode(v.Policy)
		must(t, err)
		name := strings.TrimSuffix(filepath.Base(path), ".in.json")
		all[name] = translate.Input{Spec: spec, Listen: v.Listen, Wasm: v.Wasm, CAFile: v.CAFile, Upstream: v.Upstream}
	}
	if len(all) == 0 {
		t.Fatal("no cases")
	}
	return all
}

// setYAML writes a set as one document for each resource.
func setYAML(t *testing.T, s *translate.Set) []byte {
	t.Helper()
	var out bytes.Buffer
	write := func(about string, m proto.Message) {
		b, err := envoy.YAML(m, nil)
		must(t, err)
		out.WriteString("--- # " + about + "\n")
		out.Write(b)
	}
	write("listeners and clusters", &bootstrapv3.Bootstrap_StaticResources{Listeners: s.Listeners, Clusters: s.Clusters})
	for _, r := range s.Routes {
		write("route", r)
	}
	for _, e := range s.Extensions {
		write("extension", e)
	}
	return out.Bytes()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
