// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	istiov1a3 "istio.io/api/networking/v1alpha3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// forms are the words for what a mesh may have of weir.
var forms = map[string][]string{
	"control plane":            nil,
	"static":                   {"--static"},
	"control plane behind TLS": {"--tls-dir"},
	other:                      {"--namespace", "egress", "--image", "registry.example/weir:1", "--static"},
}

const other = "another namespace, static"

func printed(t *testing.T, form string, more ...string) []object {
	t.Helper()
	args := []string{"bootstrap", "--policy", policyFile(t), "--node", "weir", "--wasm", wasm(t), "--form", form,
		"--xds", "weir.weir-system.svc:18000", "--control", "weir.weir-system.svc:10088"}
	if len(more) > 0 && more[0] == "--tls-dir" { // Envoy looks whether the files are there
		dir := t.TempDir()
		more = slices.Concat([]string{"--tls-dir", dir, "--tls-files", dir}, more[1:])
		certificates(t, dir)
	}
	return decode(t, weir(t, append(args, more...)...))
}

func TestIstio(t *testing.T) {
	for name, more := range forms {
		for _, sidecar := range []bool{false, true} {
			t.Run(fmt.Sprint(name, sidecar), func(t *testing.T) {
				if sidecar {
					more = append(slices.Clone(more), "--sidecar")
				}
				all := printed(t, "istio", more...)
				override := find[*corev1.ConfigMap](t, all, "ConfigMap", "weir-bootstrap").Data["custom_bootstrap.json"]
				config := istioProxy(sidecar)
				patchIstio(t, config, find[*istiov1a3.EnvoyFilter](t, all, "EnvoyFilter", "weir"), sidecar)
				if sidecar == (name == "static") && name != other { // Envoy is slow to look at a filter
					validate(t, config, override)
				}
				if strings.Contains(override, "weir_xds") == slices.Contains(more, "--static") {
					t.Errorf("the control plane is there, or is not: %s", override)
				}
				istioRoutes(t, all)
				if !sidecar {
					d := find[*appsv1.Deployment](t, all, "Deployment", "weir-egress")
					if d.Spec.Template.Labels["weir"] != "egress" {
						t.Error("the EnvoyFilter does not find the gateway")
					}
				}
			})
		}
	}
}

// istioProxy is the part of a proxy's configuration that is patched, as istiod makes it.
func istioProxy(sidecar bool) map[string]any {
	manager := map[string]any{
		"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "outbound_0.0.0.0_10000",
		"upgrade_configs":      []any{map[string]any{"upgrade_type": "websocket"}},
		"normalize_path":       true,
		"http_filters":         []any{typed("envoy.filters.http.cors", "envoy.extensions.filters.http.cors.v3.Cors"), typed("envoy.filters.http.router", "envoy.extensions.filters.http.router.v3.Router")},
		"request_id_extension": map[string]any{"typed_config": map[string]any{"@type": "type.googleapis.com/envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig", "use_request_id_for_trace_sampling": true}},
		"route_config": map[string]any{"name": "http.10000", "virtual_hosts": []any{map[string]any{"name": "*:10000", "domains": []any{"*"}, "routes": []any{
			map[string]any{"match": map[string]any{"prefix": "/"}, "direct_response": map[string]any{"status": 404}},
		}}}},
	}
	return map[string]any{"static_resources": map[string]any{"listeners": []any{map[string]any{
		"name": "0.0.0.0_10000", "address": map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": 10000}},
		"filter_chains": []any{map[string]any{"filters": []any{map[string]any{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}}}},
	}}}}
}

func typed(name, kind string) map[string]any {
	return map[string]any{"name": name, "typed_config": map[string]any{"@type": "type.googleapis.com/" + kind}}
}

// listenerManager finds the connection manager of the only listener.
func listenerManager(config map[string]any) map[string]any {
	l := config["static_resources"].(map[string]any)["listeners"].([]any)[0].(map[string]any)
	chain := l["filter_chains"].([]any)[0].(map[string]any)
	return chain["filters"].([]any)[0].(map[string]any)["typed_config"].(map[string]any)
}

// patchIstio does what istiod does with an EnvoyFilter.
func patchIstio(t *testing.T, config map[string]any, f *istiov1a3.EnvoyFilter, sidecar bool) {
	t.Helper()
	manager := listenerManager(config)
	context := istiov1a3.EnvoyFilter_GATEWAY
	if sidecar {
		context = istiov1a3.EnvoyFilter_SIDECAR_OUTBOUND
	}
	done := map[string]int{}
	for _, p := range f.ConfigPatches {
		value := p.Patch.Value.AsMap()
		if p.Match.Context != context || p.Match.GetListener().GetPortNumber()+p.Match.GetRouteConfiguration().GetPortNumber() != 10000 {
			t.Errorf("matches %v", p.Match)
		}
		done[p.ApplyTo.String()+" "+p.Patch.Operation.String()]++
		switch p.ApplyTo {
		case istiov1a3.EnvoyFilter_HTTP_FILTER:
			filters := manager["http_filters"].([]any)
			manager["http_filters"] = slices.Insert(filters, len(filters)-1, any(value))
		case istiov1a3.EnvoyFilter_NETWORK_FILTER:
			maps.Copy(manager, value["typed_config"].(map[string]any))
		case istiov1a3.EnvoyFilter_VIRTUAL_HOST:
			host := manager["route_config"].(map[string]any)["virtual_hosts"].([]any)[0].(map[string]any)
			maps.Copy(host, value)
			if got := fmt.Sprint(value["request_body_buffer_limit"]); got != fmt.Sprint(float64(4<<20)) {
				t.Errorf("a body may have %s bytes", got)
			}
		default:
			t.Errorf("applies to %s", p.ApplyTo)
		}
	}
	if done["HTTP_FILTER INSERT_BEFORE"] < 1 || done["NETWORK_FILTER MERGE"] != 1 || done["VIRTUAL_HOST MERGE"] != 1 {
		t.Errorf("patches: %v", done)
	}
}

// istioRoutes looks where the requests of each provider go.
func istioRoutes(t *testing.T, all []object) {
	t.Helper()
	v := find[*istiov1a3.VirtualService](t, all, "VirtualService", "weir-egress")
	got := map[string]string{}
	for _, r := range v.Http {
		if r.DirectResponse != nil {
			continue
		}
		if r.Retries == nil || r.Retries.Attempts != 0 {
			t.Errorf("%s: Istio sends again what nobody counts", r.Name)
		}
		to := r.Route[0].Destination
		got[r.Match[0].Uri.GetPrefix()+r.Match[0].Uri.GetExact()] = fmt.Sprint(to.Host, ":", to.Port.GetNumber(), " ", r.Rewrite.Uri, " ", r.Rewrite.Authority)
	}
	want := map[string]string{
		"/openai/": "api.openai.com:443 / api.openai.com", "/openai": "api.openai.com:443 / api.openai.com",
		"/eu/": "api.openai.com:8443 /eu/ api.openai.com:8443", "/eu": "api.openai.com:8443 /eu api.openai.com:8443",
		"/": "ollama.example:11434 / ollama.example:11434",
	}
	if !maps.Equal(got, want) {
		t.Errorf("routes:\n%v\nwant\n%v", got, want)
	}
	tls := find[*istiov1a3.DestinationRule](t, all, "DestinationRule", "weir-openai").TrafficPolicy.PortLevelSettings
	if len(tls) != 2 || tls[0].Tls.Mode != istiov1a3.ClientTLSSettings_SIMPLE || tls[1].Tls.SubjectAltNames[0] != "api.openai.com" {
		t.Errorf("TLS: %v", tls)
	}
}
