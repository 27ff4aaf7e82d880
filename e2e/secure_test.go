// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/envoy/envoytest"
)

const (
	e2eNodeToken = "e2e-node-token-0123456789abcdef0123"
	e2eReadToken = "e2e-read-token-0123456789abcdef0123"
)

// A secured is a control plane that listens everywhere and asks who comes, and what its Envoys have.
type secured struct {
	*split
	ca        *envoytest.CA
	dir, node string // of certificates
	tokens    string
	addr      string // of xDS
}

func newSecured(t *testing.T) *secured {
	s := &secured{split: newSplit(t, tinyPolicy(100)), ca: envoytest.NewCA(t), dir: t.TempDir(), node: t.TempDir()}
	s.issue()
	s.tokens = writeFile(t, "tokens", "node by-token "+e2eNodeToken+"\nread me "+e2eReadToken+"\n")
	s.addr = strings.Replace(s.xds, "127.0.0.1", "0.0.0.0", 1)
	return s
}

func (s *secured) issue() {
	s.ca.Issue(s.dir, "127.0.0.1", "weir.test")
	s.ca.Issue(s.node, "e2e")
}

func (s *secured) control() {
	s.t.Helper()
	s.serve = start(s.t, "serve", "--policy", s.policy, "--xds", s.addr, "--status", strings.Replace(s.status, "127.0.0.1", "0.0.0.0", 1),
		"--listen", "127.0.0.1:0", "--tls-cert", s.dir+"/tls.crt", "--tls-key", s.dir+"/tls.key", "--client-ca", s.dir+"/ca.crt",
		"--token-file", s.tokens, "--log-level", "debug")
	s.serve.find(`^control plane: xDS on (\S+),`)
}

// page reads a page of the control plane.
func (s *secured) page(path, token string) (int, string) {
	s.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.ca.PEM)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	r, err := http.NewRequest(http.MethodGet, "https://"+s.status+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// envoyAs starts an Envoy of a node; ready says whether it is to come up.
func (s *secured) envoyAs(node string, ready bool, args ...string) (*output, *envoy.Process) {
	s.t.Helper()
	bootstrap := run(s.t, append([]string{"bootstrap", "--policy", s.policy, "--node", node, "--xds", s.xds, "--control", s.status, "--wasm", s.wasm}, args...)...)
	log := new(output)
	o := envoy.Options{Bootstrap: []byte(bootstrap), Concurrency: 1, Log: log, StartTimeout: startTimeout}
	begin := envoy.Start
	if ready {
		begin = envoy.Run
	}
	p, err := begin(context.Background(), o)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, tail(log.String(), 3000))
	}
	s.t.Cleanup(func() { _ = p.Stop() })
	if ready {
		if s.proxy, err = p.Listener(context.Background(), "weir"); err != nil {
			s.t.Fatal(err)
		}
	}
	return log, p
}

// takes waits until Envoy has a policy that lets 500 tokens through, or does not.
func (s *secured) takes(status int) {
	s.t.Helper()
	eventually(s.t, 20*time.Second, func() (bool, string) {
		got := s.status500()
		return got == status, fmt.Sprintf("status %d, want %d\n%s", got, status, tail(s.serve.stderr.String(), 2000))
	})
}

// A real Envoy takes its configuration over mutual TLS, goes on when the CA and all certificates are replaced, and nobody gets
// in under another's name. Logs tell no secrets, not even at debug.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	s.control()
	files := []string{"--tls-dir", s.node, "--tls-files", s.node}
	log, _ := s.envoyAs("e2e", true, files...)
	s.takes(413)

	_, impostor := s.envoyAs("another", false, files...)
	eventually(t, 20*time.Second, func() (bool, string) {
		_, body := s.page("/api/status", e2eReadToken)
		return strings.Contains(body, "its certificate or token is not this node"), body
	})
	_ = impostor.Stop()
	for path, want := range map[string]int{"/": 401, "/metrics": 401, "/api/status": 401, "/livez": 200} {
		if got, body := s.page(path, ""); got != want {
			t.Errorf("%s without a token: %d %s", path, got, body)
		}
	}
	if got, _ := s.page("/metrics", e2eReadToken); got != 200 {
		t.Errorf("metrics with a token: %d", got)
	}

	// A broken certificate changes nothing, and is told.
	old, err := os.ReadFile(s.dir + "/tls.key")
	if err != nil {
		t.Fatal(err)
	}
	replaceFile(t, s.dir+"/tls.key", "broken")
	eventually(t, 10*time.Second, func() (bool, string) {
		return strings.Contains(s.serve.stderr.String(), "the old ones stay"), tail(s.serve.stderr.String(), 500)
	})
	if got, _ := s.page("/livez", ""); got != 200 {
		t.Errorf("with a broken certificate on the disk: %d", got)
	}
	replaceFile(t, s.dir+"/tls.key", string(old))

	// Another CA on both ends, while all run; the connection has to be made anew.
	s.ca = envoytest.NewCA(t)
	s.issue()
	eventually(t, 10*time.Second, func() (bool, string) { got, body := s.page("/livez", ""); return got == 200, body })
	s.serve.kill()
	// A control plane that knows nothing of the one before gives out shares only after a while; that is another test's.
	replaceFile(t, s.policy, strings.ReplaceAll(tinyPolicy(1000)+"fleet: {scope: node}\n", "MOCK", s.mock.addr))
	s.control()
	s.takes(200)

	secret := call{tenant: "hush-tenant", text: "hush prompt", output: 5, headers: map[string]string{"authorization": "Bearer sk-hush-key"}}
	send(t, s.proxy, secret, call{tenant: "hush-tenant", text: "hush prompt", output: 5000})
	time.Sleep(time.Second)
	for who, text := range map[string]string{"weir": s.serve.stderr.String(), "Envoy": log.String()} {
		for _, word := range []string{"hush", e2eNodeToken, e2eReadToken, "PRIVATE KEY"} {
			if i := strings.Index(text, word); i >= 0 {
				t.Errorf("%s's log has %q: %s", who, word, text[max(i-200, 0):min(i+200, len(text))])
			}
		}
	}
}

// The simple way: TLS, and a token for each node.
func TestTokenOverTLS(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	s.control()
	dir := t.TempDir() // with the CA, and no certificate
	ca, err := os.ReadFile(filepath.Join(s.dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	replaceFile(t, dir+"/ca.crt", string(ca))
	s.envoyAs("by-token", true, "--tls-dir", dir, "--tls-files", dir, "--token-file", s.tokens)
	s.takes(413)

	// The same with the pieces of a listener of one's own.
	s.envoyAs("by-token", true, "--tls-dir", dir, "--tls-files", dir, "--token-file", s.tokens, "--form", "whole", "--listen", "127.0.0.1:0")
	replaceFile(t, s.policy, strings.ReplaceAll(tinyPolicy(1000), "MOCK", s.mock.addr))
	s.takes(200)
}

// weir does not start open where others can reach it, and says what to write.
func TestServeRefusesToStartOpen(t *testing.T) {
	t.Parallel()
	policy := writeFile(t, "policy.yaml", strings.ReplaceAll(tinyPolicy(1), "MOCK", "127.0.0.1:1"))
	tokens := writeFile(t, "tokens", e2eReadToken)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"xds":            {[]string{"--xds", "0.0.0.0:0"}, "--client-ca or --token-file"},
		"status":         {[]string{"--status", ":0"}, "--client-ca or --token-file"},
		"tokens, no TLS": {[]string{"--xds", "0.0.0.0:0", "--token-file", tokens}, "--tls-cert"},
		"listen":         {[]string{"--listen", "0.0.0.0:0"}, "--listen-anywhere"},
		"half a pair":    {[]string{"--tls-cert", tokens}, "needs a key"},
		"no store":       {[]string{"--store", "mysql://x"}, "write bolt:PATH"},
	} {
		args := append([]string{"serve", "--policy", policy, "--xds", "127.0.0.1:0", "--status", "127.0.0.1:0", "--listen", "127.0.0.1:0"}, c.args...)
		out, code := runFails(t, args...)
		if code != 2 || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, wrote %s, want %q", name, code, out, c.want)
		}
	}
	if out, code := runFails(t, "bootstrap", "--policy", policy, "--node", "n", "--xds", "10.0.0.1:1", "--token-file", tokens); code != 2 || !strings.Contains(out, "plain text") {
		t.Errorf("a token in plain text: %d %s", code, out)
	}
}

// runFails runs a weir command that is to fail at once.
func runFails(t *testing.T, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}
