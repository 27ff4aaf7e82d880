// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"strings"
	"testing"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/ohler55/ojg/jp"
	"github.com/ohler55/ojg/oj"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func TestEnvoyGateway(t *testing.T) {
	for name, more := range forms {
		t.Run(name, func(t *testing.T) {
			all := printed(t, "envoy-gateway", more...)
			proxy := find[*egv1a1.EnvoyProxy](t, all, "EnvoyProxy", "weir")
			config := istioProxy(false)
			listeners := config["static_resources"].(map[string]any)["listeners"].([]any)
			listeners[0] = patchGateway(t, listeners[0], find[*egv1a1.EnvoyPatchPolicy](t, all, "EnvoyPatchPolicy", "weir"))
			filters := listenerManager(config)["http_filters"].([]any)
			if n := len(filters); filters[n-1].(map[string]any)["name"] != "envoy.filters.http.router" || filters[1].(map[string]any)["name"] != "weir.policy" {
				t.Errorf("the filter is not before the router: %v", filters)
			}
			if name != other {
				validate(t, config, *proxy.Spec.Bootstrap.Value)
			}
			gatewayRoutes(t, all)
		})
	}
}

// patchGateway does what Envoy Gateway does with an EnvoyPatchPolicy.
func patchGateway(t *testing.T, listener any, p *egv1a1.EnvoyPatchPolicy) any {
	t.Helper()
	doc, err := json.Marshal(listener)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Spec.JSONPatches {
		if c.Name != p.Namespace+"/weir/http" {
			t.Errorf("patches %s", c.Name)
		}
		op := map[string]any{"op": c.Operation.Op, "value": c.Operation.Value, "path": pointer(t, doc, c.Operation)}
		b, err := json.Marshal([]any{op})
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(b)
		if err == nil {
			doc, err = patch.Apply(doc)
		}
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
	}
	var out any
	if err := json.Unmarshal(doc, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// pointer finds the one place that a JSONPath names.
func pointer(t *testing.T, doc []byte, op egv1a1.JSONPatchOperation) string {
	t.Helper()
	at := jp.MustParseString(*op.JSONPath).Locate(oj.MustParse(doc), 0)
	if len(at) != 1 {
		t.Fatalf("%s is at %d places", *op.JSONPath, len(at))
	}
	var s strings.Builder
	for _, f := range at[0] {
		switch f := f.(type) {
		case jp.Child:
			s.WriteString("/" + string(f))
		case jp.Nth:
			s.WriteString("/" + jp.Expr{f}.String()[1:len(jp.Expr{f}.String())-1])
		}
	}
	if op.Path != nil {
		s.WriteString("/" + *op.Path)
	}
	return s.String()
}

// gatewayRoutes looks where the requests of each provider go.
func gatewayRoutes(t *testing.T, all []object) {
	t.Helper()
	for name, want := range map[string]string{
		"weir-openai":    "/openai weir-openai-443 api.openai.com /",
		"weir-openai-eu": "/eu weir-openai-8443 api.openai.com /eu",
		"weir-ollama":    "/ weir-ollama-11434 ollama.example /",
	} {
		r := find[*gwv1.HTTPRoute](t, all, "HTTPRoute", name).Spec.Rules[0]
		rewrite, to := r.Filters[0].URLRewrite, string(r.BackendRefs[0].Name)
		got := strings.Join([]string{*r.Matches[0].Path.Value, to, string(*rewrite.Hostname), *rewrite.Path.ReplacePrefixMatch}, " ")
		if got != want || r.Timeouts == nil || *r.Timeouts.Request != "0s" {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		b := find[*egv1a1.Backend](t, all, "Backend", to)
		if (b.Spec.TLS != nil) == (name == "weir-ollama") || b.Spec.Endpoints[0].FQDN.Port != int32(*r.BackendRefs[0].Port) {
			t.Errorf("%s: %v", to, b.Spec)
		}
	}
	limit := find[*egv1a1.ClientTrafficPolicy](t, all, "ClientTrafficPolicy", "weir").Spec.Connection.BufferLimit
	if limit.Value() != 4<<20 {
		t.Errorf("a body may have %v", limit)
	}
}
