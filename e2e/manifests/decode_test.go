// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	istiov1a3 "istio.io/api/networking/v1alpha3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// types makes an empty object of each kind that a manifest of ours may have.
var types = map[string]func() any{
	"apps/v1 Deployment":                                 func() any { return new(appsv1.Deployment) },
	"apps/v1 StatefulSet":                                func() any { return new(appsv1.StatefulSet) },
	"v1 ConfigMap":                                       func() any { return new(corev1.ConfigMap) },
	"v1 Namespace":                                       func() any { return new(corev1.Namespace) },
	"v1 Secret":                                          func() any { return new(corev1.Secret) },
	"v1 Service":                                         func() any { return new(corev1.Service) },
	"v1 ServiceAccount":                                  func() any { return new(corev1.ServiceAccount) },
	"networking.k8s.io/v1 NetworkPolicy":                 func() any { return new(networkingv1.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":                      func() any { return new(policyv1.PodDisruptionBudget) },
	"gateway.networking.k8s.io/v1 Gateway":               func() any { return new(gwv1.Gateway) },
	"gateway.networking.k8s.io/v1 GatewayClass":          func() any { return new(gwv1.GatewayClass) },
	"gateway.networking.k8s.io/v1 HTTPRoute":             func() any { return new(gwv1.HTTPRoute) },
	"gateway.envoyproxy.io/v1alpha1 Backend":             func() any { return new(egv1a1.Backend) },
	"gateway.envoyproxy.io/v1alpha1 ClientTrafficPolicy": func() any { return new(egv1a1.ClientTrafficPolicy) },
	"gateway.envoyproxy.io/v1alpha1 EnvoyPatchPolicy":    func() any { return new(egv1a1.EnvoyPatchPolicy) },
	"gateway.envoyproxy.io/v1alpha1 EnvoyProxy":          func() any { return new(egv1a1.EnvoyProxy) },
	"gateway.envoyproxy.io/v1alpha1 HTTPRouteFilter":     func() any { return new(egv1a1.HTTPRouteFilter) },
	"networking.istio.io/v1 DestinationRule":             func() any { return new(istiov1a3.DestinationRule) },
	"networking.istio.io/v1 Gateway":                     func() any { return new(istiov1a3.Gateway) },
	"networking.istio.io/v1 ServiceEntry":                func() any { return new(istiov1a3.ServiceEntry) },
	"networking.istio.io/v1 VirtualService":              func() any { return new(istiov1a3.VirtualService) },
	"networking.istio.io/v1alpha3 EnvoyFilter":           func() any { return new(istiov1a3.EnvoyFilter) },
}

// An object is one document of a manifest.
type object struct {
	kind, name string
	typed      any
}

// decode reads manifests by the real types: what they do not know is an error.
func decode(t *testing.T, manifests []byte) (all []object) {
	t.Helper()
	for _, doc := range bytes.Split(append([]byte("\n"), manifests...), []byte("\n---\n")) {
		o, err := decodeOne(doc)
		if err != nil {
			t.Errorf("%v\n%s", err, doc)
		} else if o.typed != nil {
			all = append(all, o)
		}
	}
	return all
}

func decodeOne(doc []byte) (o object, err error) {
	var head struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   json.RawMessage `json:"metadata"`
		Spec       json.RawMessage `json:"spec"`
	}
	var named struct{ Name, Namespace string }
	j, err := yaml.YAMLToJSONStrict(doc)
	if err != nil || string(j) == "null" { // comments alone
		return o, err
	}
	if err := json.Unmarshal(j, &head); err != nil {
		return o, err
	}
	if err := json.Unmarshal(head.Metadata, &named); err != nil || named.Name == "" {
		return o, fmt.Errorf("no name: %v", err)
	}
	make := types[head.APIVersion+" "+head.Kind]
	if make == nil {
		return o, fmt.Errorf("%s %s is of no known type", head.APIVersion, head.Kind)
	}
	o = object{head.Kind, named.Name, make()}
	if m, ok := o.typed.(proto.Message); ok {
		return o, protojson.Unmarshal(head.Spec, m)
	}
	return o, yaml.UnmarshalStrict(doc, o.typed)
}

// find gives the object of a kind and a name.
func find[T any](t *testing.T, all []object, kind, name string) T {
	t.Helper()
	for _, o := range all {
		if typed, ok := o.typed.(T); ok && o.kind == kind && o.name == name {
			return typed
		}
	}
	t.Fatalf("no %s %s", kind, name)
	panic("not reached")
}

// weir runs bin/weir.
func weir(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("../../bin/weir", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

func envoyPath() string { return cmp.Or(os.Getenv("ENVOY_PATH"), "../../.tools/envoy/bin/envoy") }

// validate gives a configuration to a real Envoy, and what is merged into it as Istio and others do.
func validate(t *testing.T, config any, merged string) {
	t.Helper()
	b, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--mode", "validate", "-c", file, "--service-node", "n", "--service-cluster", "c"}
	if merged != "" {
		args = append(args, "--config-yaml", merged)
	}
	if out, err := exec.Command(envoyPath(), args...).CombinedOutput(); err != nil {
		t.Errorf("Envoy: %v\n%s", err, out)
	}
}

// policyFile is a policy with what makes a difference to manifests: providers, paths, ports, one without TLS, and limits that depend on
// what a body says, so that bodies are held.
func policyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	err := os.WriteFile(path, []byte(`apiVersion: weir/v1
body: {hold: 3MiB}
providers:
  openai: {upstream: https://api.openai.com, models: {"gpt-4o*": {rpm: 500, tpm: 60_000, window: continuous}, "*": {tpm: 60_000}}}
  openai_eu: {dialect: openai, upstream: "https://api.openai.com:8443/eu", prefix: /eu, models: {"*": {tpm: 60_000}}}
  ollama: {upstream: "http://ollama.example:11434", dialect: ollama, prefix: /, models: {"*": {tpm: 60_000}}}
limits:
  tenant: {default: {tpm: 20_000}}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// certificates puts a certificate, its key and its CA into a folder.
func certificates(t *testing.T, dir string, more ...string) {
	t.Helper()
	args := []string{"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=weir", "-keyout", dir + "/tls.key", "-out", dir + "/tls.crt"}
	cmd := exec.Command("openssl", append(args, more...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(dir + "/tls.crt")
	if err == nil {
		err = os.WriteFile(dir+"/ca.crt", b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// standin is a small filter in the place of weir's, of which Envoy takes seconds to compile.
var standin = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "weir-manifests")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "weir-0123abcd.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", path, "./envoy/envoytest/standin")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return path, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := standin(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// wasm gives the path of a filter.
func wasm(t *testing.T) string {
	t.Helper()
	path, err := standin()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
