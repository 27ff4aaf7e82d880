// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	composetypes "github.com/compose-spec/compose-go/v2/types"
	corev1 "k8s.io/api/core/v1"
)

// TestCompose reads the file by Compose's own library, and starts what its services start. They share a network, as here.
func TestCompose(t *testing.T) {
	const dir = "../../envoy/compose"
	p, err := loader.LoadWithContext(t.Context(), composetypes.ConfigDetails{
		WorkingDir: dir, ConfigFiles: []composetypes.ConfigFile{{Filename: dir + "/compose.yaml"}},
	}, func(o *loader.Options) { o.SetProjectName("weir", true) })
	if err != nil {
		t.Fatal(err)
	}
	policy, err := os.ReadFile(dir + "/policy/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, &corev1.ConfigMap{Data: map[string]string{"policy.yaml": string(policy)}}, &corev1.ConfigMap{})
	service := func(name string) corev1.Container {
		s := p.Services[name]
		container := corev1.Container{Name: name, Args: s.Command}
		for k, v := range s.Environment {
			container.Env = append(container.Env, corev1.EnvVar{Name: k, Value: *v})
		}
		return container
	}
	weir(t, c.args(service("filter"))...)
	weir(t, append(c.args(service("bootstrap")), "--wasm-dir", c.here.Replace("/etc/envoy/"))...)
	c.start("../../bin/weir", service("weir"))
	envoy := service("envoy")
	envoy.Args = append(envoy.Args, "--use-dynamic-base-id") // beside other Envoys of this machine
	c.start(envoyPath(), envoy)
	c.wants("http://127.0.0.1:10000/nowhere", 404, "no provider has this path prefix")
	pinned, err := os.ReadFile("../../envoy/requirements.txt")
	if _, version, _ := strings.Cut(p.Services["envoy"].Image, "-v"); err != nil || !strings.Contains(string(pinned), "=="+version+" ") {
		t.Errorf("Envoy %q, want that of envoy/requirements.txt (%v)", version, err)
	}
}

// TestUnits runs the commands of the units as systemd would, and has systemd look at them where there is one.
func TestUnits(t *testing.T) {
	c := newCluster(t, &corev1.ConfigMap{Data: map[string]string{"policy.yaml": "apiVersion: weir/v1\nproviders: {openai: {upstream: https://api.openai.com}}\n"}}, &corev1.ConfigMap{})
	run := t.TempDir()
	commands := map[string][]string{}
	for _, unit := range []string{"weir.service", "weir-envoy.service"} {
		b, err := os.ReadFile("../../envoy/systemd/" + unit)
		if err != nil {
			t.Fatal(err)
		}
		verifyUnit(t, unit, string(b))
		for _, m := range regexp.MustCompile(`(?m)^Exec\w+=(.*)$`).FindAllStringSubmatch(string(b), -1) {
			line := strings.NewReplacer("/run/weir-envoy", run, "%H", "machine").Replace(m[1])
			commands[unit] = append(commands[unit], line)
		}
	}
	fields := func(line string) []string { return strings.Fields(line)[1:] }
	here := func(line string, more ...string) []string {
		return c.args(corev1.Container{Args: append(fields(line), more...)})
	}
	serve := append(fields(commands["weir.service"][0]), "--xds", "127.0.0.1:18000", "--status", "127.0.0.1:10080", "--listen", "127.0.0.1:10000")
	c.start("../../bin/weir", corev1.Container{Name: "weir", Args: serve, Env: []corev1.EnvVar{{Name: "STATE_DIRECTORY", Value: "/var/lib/weir"}}})
	weir(t, here(commands["weir-envoy.service"][0])...)
	weir(t, here(commands["weir-envoy.service"][1], "--xds", "127.0.0.1:18000", "--control", "127.0.0.1:10080")...)
	c.start(envoyPath(), corev1.Container{Name: "envoy", Args: append(fields(commands["weir-envoy.service"][2]), "--use-dynamic-base-id")})
	c.wants("http://127.0.0.1:10000/nowhere", 404, "no provider has this path prefix")
	if kept, err := filepath.Glob(c.here.Replace("/var/lib/weir/") + "*.db"); err != nil || len(kept) != 1 {
		t.Errorf("the state is not in StateDirectory: %v %v", kept, err)
	}
}

func verifyUnit(t *testing.T, name, unit string) {
	t.Helper()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("no systemd here to look at units")
		return
	}
	path := filepath.Join(t.TempDir(), name)
	unit = strings.NewReplacer("/usr/bin/weir", "/bin/true", "/usr/bin/envoy", "/bin/true").Replace(unit)
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--recursive-errors=no", path).CombinedOutput()
	if err != nil || strings.Contains(string(out), name+":") {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}
