// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestManifestRuns starts what the manifest says, with its arguments and its Secrets, and probes it as a kubelet does. Only
// addresses and folders are others.
func TestManifestRuns(t *testing.T) {
	all := decode(t, mustRender(t, ""))
	c := newCluster(t, find[*corev1.ConfigMap](t, all, "ConfigMap", "weir-policy"), find[*corev1.ConfigMap](t, all, "ConfigMap", "weir-tls"))
	control := find[*appsv1.StatefulSet](t, all, "StatefulSet", "weir").Spec.Template.Spec.Containers[0]
	egress := find[*appsv1.Deployment](t, all, "Deployment", "weir-egress").Spec.Template.Spec
	c.start("../../bin/weir", control)
	c.probe(control, control.ReadinessProbe)
	c.probe(control, control.LivenessProbe)
	weir(t, c.args(egress.InitContainers[0])...)
	weir(t, append(c.args(egress.InitContainers[1]), "--wasm-dir", c.here.Replace("/etc/envoy/"))...) // else the true folder
	c.start(envoyPath(), egress.Containers[0])
	c.probe(egress.Containers[0], egress.Containers[0].ReadinessProbe)
	c.wants("http://127.0.0.1:10000/nowhere", 404, "no provider has this path prefix")
	c.wants("http://127.0.0.1:9902/stats/prometheus", 200, "envoy_server_live")
	c.wants("http://127.0.0.1:9902/config_dump", 404, "") // nothing else of the admin interface
}

// A cluster stands for Kubernetes: what is in Secrets and ConfigMaps is in folders.
type cluster struct {
	*testing.T
	here *strings.Replacer
}

func newCluster(t *testing.T, policy, tlsFile *corev1.ConfigMap) *cluster {
	dir := t.TempDir()
	var pairs []string
	for _, folder := range []string{"/etc/weir-tls", "/etc/weir-tokens", "/etc/weir", "/etc/envoy", "/var/lib/weir"} {
		if err := os.MkdirAll(dir+folder, 0o700); err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, folder+"/", dir+folder+"/", "="+folder, "="+dir+folder)
	}
	for _, port := range []string{"18000", "10088", "10080", "10000", "9901", "9902"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		for _, host := range []string{"0.0.0.0", "127.0.0.1", "weir." + namespace + ".svc"} {
			pairs = append(pairs, host+":"+port, l.Addr().String())
		}
	}
	c := &cluster{t, strings.NewReplacer(append(pairs, "$(POD_NAME)", "weir-egress-1")...)}
	certificates(t, dir+"/etc/weir-tls", "-addext", "subjectAltName=IP:127.0.0.1")
	c.write(dir+"/etc/weir/policy.yaml", policy.Data["policy.yaml"])
	c.write(dir+"/etc/weir-tls/weir-ca.yaml", strings.ReplaceAll(tlsFile.Data["weir-ca.yaml"], "/etc/weir-tls", dir+"/etc/weir-tls"))
	c.write(dir+"/etc/weir-tokens/tokens", "node * 0123456789abcdef0123456789abcdef\n")
	return c
}

func (c *cluster) write(path, text string) {
	c.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) args(container corev1.Container) (args []string) {
	for _, a := range container.Args {
		args = append(args, c.here.Replace(a))
	}
	return args
}

// start runs a container until the test ends.
func (c *cluster) start(path string, container corev1.Container) {
	c.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, c.args(container)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	for _, e := range container.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+c.here.Replace(e.Value+"/"))
	}
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if c.Failed() {
			text := out.String()
			c.Logf("%s:\n%s", container.Name, text[max(0, len(text)-3000):])
		}
	})
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, // as a kubelet does
}}

// probe asks a container what its probe asks, until the answer is yes.
func (c *cluster) probe(container corev1.Container, p *corev1.Probe) {
	c.Helper()
	get, port := p.HTTPGet, int32(0)
	for _, o := range container.Ports {
		if o.Name == get.Port.StrVal {
			port = o.ContainerPort
		}
	}
	url := fmt.Sprintf("http://127.0.0.1:%d%s", port, get.Path)
	if get.Scheme == corev1.URISchemeHTTPS {
		url = strings.Replace(url, "http", "https", 1)
	}
	host := "10.1.2.3" // the Pod's
	if len(get.HTTPHeaders) > 0 {
		host = get.HTTPHeaders[0].Value
	}
	c.until(url, host, 200, "")
}

func (c *cluster) wants(url string, status int, text string) {
	c.Helper()
	c.until(url, "", status, text)
}

func (c *cluster) until(url, host string, status int, text string) {
	c.Helper()
	last := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		r, err := http.NewRequest(http.MethodGet, c.here.Replace(url), nil)
		if err != nil {
			c.Fatal(err)
		}
		r.Host = host
		resp, err := client.Do(r)
		if err != nil {
			last = err.Error()
			continue
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == status && strings.Contains(string(b), text) {
			return
		}
		last = fmt.Sprint(resp.StatusCode, " ", string(b[:min(len(b), 300)]))
	}
	c.Fatalf("%s: %s", url, last)
}
