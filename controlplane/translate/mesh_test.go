// SPDX-License-Identifier: Apache-2.0

package translate_test

import (
	"strings"
	"testing"

	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/policy"
)

func meshInput(providers map[string]policy.ProviderSpec) translate.MeshInput {
	return translate.MeshInput{FragmentInput: translate.FragmentInput{
		Input: translate.Input{Spec: &policy.Spec{APIVersion: policy.APIVersion, Providers: providers}, Wasm: "/etc/weir/weir-0123abcd.wasm"},
		XDS:   "weir.weir-system.svc:18000",
	}}
}

// What meshes make of it is tested in e2e/manifests. Here: the same input gives the same bytes, and what cannot be is said.
func TestMesh(t *testing.T) {
	openai := policy.ProviderSpec{Upstream: "https://api.openai.com"}
	for name, print := range map[string]func(translate.MeshInput) ([]byte, error){"Istio": translate.Istio, "EnvoyGateway": translate.EnvoyGateway} {
		in := meshInput(map[string]policy.ProviderSpec{"openai": openai, "Open.AI": {Upstream: "https://api.openai.com/v2", Dialect: "openai", Prefix: "/two"}})
		first, err := print(in)
		must(t, err)
		for range 20 {
			if again, err := print(in); err != nil || string(again) != string(first) {
				t.Fatalf("%s: other bytes for the same input (%v)", name, err)
			}
		}
		for want, change := range map[string]func(*translate.MeshInput){
			"not absolute":            func(in *translate.MeshInput) { in.Wasm = "weir-0123abcd.wasm" },
			"openai: a mesh needs an": func(in *translate.MeshInput) { in.Spec.Providers["openai"] = policy.ProviderSpec{Cluster: "mine"} },
			"upstream with a name": func(in *translate.MeshInput) {
				in.Spec.Providers["openai"] = policy.ProviderSpec{Upstream: "https://10.0.0.1"}
			},
			"both http and https": func(in *translate.MeshInput) {
				in.Spec.Providers["other"] = policy.ProviderSpec{Upstream: "http://api.openai.com:443", Dialect: "openai"}
			},
			"write host:port": func(in *translate.MeshInput) { in.XDS = ":18000" },
		} {
			in := meshInput(map[string]policy.ProviderSpec{"openai": openai})
			change(&in)
			if _, err := print(in); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q in it", name, err, want)
			}
		}
	}
}

// Without a control plane nothing asks for one, and the policy is in the filter's entry.
func TestStaticPieces(t *testing.T) {
	in := meshInput(map[string]policy.ProviderSpec{"openai": {Upstream: "https://api.openai.com"}})
	in.Static, in.XDS, in.Listen = true, "", "127.0.0.1:0"
	p, err := translate.Fragments(in.FragmentInput)
	must(t, err)
	pieces, err := p.YAML()
	must(t, err)
	whole, err := p.Bootstrap()
	must(t, err)
	for _, b := range [][]byte{pieces, whole} {
		for _, not := range []string{"weir_xds", "weir_control", "weir.shares", "config_discovery", "control plane, "} {
			if strings.Contains(string(b), not) {
				t.Errorf("has %s:\n%s", not, b)
			}
		}
		if !strings.Contains(string(b), `\"upstream\":\"https://api.openai.com\"`) {
			t.Errorf("has no policy:\n%s", b)
		}
	}
}
