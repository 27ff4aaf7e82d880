// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
)

// centralPolicy holds 10,000 tokens a minute and 40 requests a second over all Envoys for each tenant, but for one that is not
// limited, and one whose limit each Envoy holds by itself. No floor is large enough for a call.
const centralPolicy = `
apiVersion: weir/v1
trust: [all]
fleet: {scope: node}
providers:
  openai: {upstream: "http://MOCK", attempts: true}
limits:
  tenant:
    default: {tpm: 10_000, burst: 100%, scope: central}
    often: {rps: 40, burst: 100%, scope: central}
    free: {tpm: 100_000_000, burst: 100%, scope: central}
    own: {tpm: 100_000_000, burst: 100%, scope: node}
`

// A central fleet is one control plane with a store, and two Envoys.
type centralFleet struct {
	*split
	store   string
	proxies []string
}

func startCentral(t *testing.T, store string) *centralFleet {
	s := &centralFleet{split: newSplit(t, centralPolicy), store: store}
	s.control()
	for _, node := range []string{"egress-1", "egress-2"} {
		s.proxies = append(s.proxies, s.startNode(node))
	}
	return s
}

func (s *centralFleet) control() {
	s.serve = start(s.t, "serve", "--policy", s.policy, "--xds", s.xds, "--status", s.status, "--listen", "127.0.0.1:0", "--store", s.store)
	s.serve.find(`^control plane: xDS on (\S+),`)
}

// startNode starts an Envoy with two workers.
func (s *split) startNode(node string, args ...string) (proxy string) {
	s.t.Helper()
	bootstrap := run(s.t, append([]string{"bootstrap", "--policy", s.policy, "--node", node, "--xds", s.xds, "--control", s.status, "--wasm", s.wasm}, args...)...)
	log := new(output)
	p, err := envoy.Run(context.Background(), envoy.Options{Bootstrap: []byte(bootstrap), Concurrency: 2, Log: log, StartTimeout: startTimeout})
	if err != nil {
		s.t.Fatalf("%v\n%s", err, tail(log.String(), 3000))
	}
	s.t.Cleanup(func() {
		_ = p.Stop()
		if s.t.Failed() {
			s.t.Logf("Envoy %s wrote:\n%s", node, tail(log.String(), 4000))
		}
	})
	if proxy, err = p.Listener(context.Background(), "weir"); err != nil {
		s.t.Fatal(err)
	}
	return proxy
}

// both sends calls to both Envoys at once, and counts the answers by status.
func (s *centralFleet) both(calls ...call) map[int]int {
	var got [2]map[int]int
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i] = send(s.t, s.proxies[i], calls...) })
	}
	all.Wait()
	for status, n := range got[1] {
		got[0][status] += n
	}
	return got[0]
}

// A limit of scope central is exact over two Envoys: to the token, and in any second.
func TestCentralIsExact(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) string{
		"bolt":  func(t *testing.T) string { return "bolt:" + filepath.Join(t.TempDir(), "weir.db") },
		"redis": func(t *testing.T) string { return newRedis(t).url() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startCentral(t, start(t))
			got := s.both(repeat(call{tenant: "a", output: 100 - inputOfHi, input: inputOfHi}, 150)...)
			if got[200] != 100 || got[429] != 200 {
				t.Errorf("of 300 calls of 100 tokens: %v, want 100 that fit", got)
			}
			// What a call does not use is free again: nine tenths of each of these.
			for range 5 {
				got = s.both(repeat(call{tenant: "b", output: 1000 - inputOfHi, input: inputOfHi, headers: map[string]string{"x-mock-output-tokens": "92"}}, 3)...)
				if got[200] != 6 {
					t.Errorf("calls that use a tenth: %v", got)
				}
				time.Sleep(200 * time.Millisecond)
			}
			s.anySecond()
			t.Logf("%s: added by asking: %s", name, s.latency())
		})
	}
}

// anySecond offers more requests than a limit has for three seconds, and looks at when those came that were let through.
func (s *centralFleet) anySecond() {
	s.t.Helper()
	var mu sync.Mutex
	var times []time.Time
	var all sync.WaitGroup
	end := time.Now().Add(3 * time.Second)
	for i := range 8 {
		all.Go(func() {
			for time.Now().Before(end) {
				at := time.Now()
				if send(s.t, s.proxies[i%2], call{tenant: "often", output: 1})[200] == 1 {
					mu.Lock()
					times = append(times, at)
					mu.Unlock()
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	all.Wait()
	if n := len(times); n > 40*4 || n < 40*2 {
		s.t.Errorf("%d requests in 3 s, at 40 a second", n)
	}
}

// latency is what it takes longer to ask the control plane than not to.
func (s *centralFleet) latency() string {
	measure := func(tenant string) (p50, p99 time.Duration) {
		client := &http.Client{}
		defer client.CloseIdleConnections()
		var list []time.Duration
		for range 300 {
			begin := time.Now()
			resp, err := client.Do(call{tenant: tenant, output: 1}.request(s.proxies[0]))
			if err != nil {
				s.t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			list = append(list, time.Since(begin))
		}
		slices.Sort(list)
		return list[150], list[297]
	}
	own50, own99 := measure("own")
	free50, free99 := measure("free")
	return fmt.Sprintf("p50 %v, p99 %v (a limit of the Envoy: %v, %v)", free50-own50, free99-own99, own50, own99)
}

// The store goes and comes back: meanwhile callers hear quickly that this Envoy has no part of the limit.
func TestCentralStoreIsLost(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	s := startCentral(t, r.url())
	if got := s.both(call{tenant: "a", output: 1000}); got[200] != 2 {
		t.Fatalf("%v", got)
	}
	r.stop()
	for range 3 {
		begin := time.Now()
		got, reason := s.ask("a")
		if took := time.Since(begin); got != 429 || reason != "no_share" || took > 3*time.Second {
			t.Errorf("without a store: %d %s after %v", got, reason, took)
		}
	}
	r.start()
	eventually(t, 15*time.Second, func() (bool, string) {
		got, reason := s.ask("b")
		return got == 200, fmt.Sprint(got, reason)
	})
	s.serve.kill()
	if got, reason := s.ask("c"); got != 429 || reason != "no_share" {
		t.Errorf("without a control plane: %d %s", got, reason)
	}
	if got := send(t, s.proxies[0], call{tenant: "own", output: 100}); got[200] != 1 {
		t.Errorf("a limit of the Envoy: %v", got)
	}
	s.control()
	eventually(t, 15*time.Second, func() (bool, string) {
		got, reason := s.ask("d")
		return got == 200, fmt.Sprint(got, reason)
	})
}

func (s *centralFleet) ask(tenant string) (status int, reason string) {
	resp, err := http.DefaultClient.Do(call{tenant: tenant, output: 100}.request(s.proxies[0]))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("x-weir-reason")
}

// A node's token, or its certificate, goes with what the filter sends; without one nobody is answered.
func TestCentralIsGuarded(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	replaceFile(t, s.policy, strings.ReplaceAll(centralPolicy, "MOCK", s.mock.addr))
	s.serve = start(t, "serve", "--policy", s.policy, "--xds", s.addr, "--status", strings.Replace(s.status, "127.0.0.1", "0.0.0.0", 1),
		"--listen", "127.0.0.1:0", "--tls-cert", s.dir+"/tls.crt", "--tls-key", s.dir+"/tls.key", "--client-ca", s.dir+"/ca.crt",
		"--token-file", s.tokens, "--store", "bolt:"+filepath.Join(t.TempDir(), "weir.db"))
	s.serve.find(`^control plane: xDS on (\S+),`)
	dir := t.TempDir() // with the CA, and no certificate
	ca, err := os.ReadFile(filepath.Join(s.dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	replaceFile(t, dir+"/ca.crt", string(ca))
	wrong := writeFile(t, "wrong", "node by-token "+strings.ToUpper(e2eNodeToken)+"\n")
	token := []string{"--tls-dir", dir, "--tls-files", dir, "--token-file"}
	whole := []string{"--form", "whole", "--listen", "127.0.0.1:0", "--strict"} // it has the policy, whoever answers
	for name, c := range map[string]struct {
		node string
		args []string
		want int
	}{
		"token":               {"by-token", append(token, s.tokens), 200},
		"certificate":         {"e2e", []string{"--tls-dir", s.node, "--tls-files", s.node}, 200},
		"wrong token":         {"by-token", slices.Concat(token, []string{wrong}, whole), 429},
		"another's":           {"another", slices.Concat([]string{"--tls-dir", s.node, "--tls-files", s.node}, whole), 429},
		"certificate, pieces": {"e2e", slices.Concat([]string{"--tls-dir", s.node, "--tls-files", s.node}, whole), 200},
	} {
		proxy := s.startNode(c.node, c.args...)
		got := send(t, proxy, repeat(call{tenant: "x", output: 100}, 3)...)
		if got[c.want] != 3 {
			t.Errorf("%s: %v, want %d", name, got, c.want)
		}
	}
}

// A redis is a server of a test's own.
type redis struct {
	t    *testing.T
	addr string
	cmd  *exec.Cmd
}

func newRedis(t *testing.T) *redis {
	t.Helper()
	r := &redis{t: t, addr: freePort(t)}
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *redis) url() string { return "redis://" + r.addr }

func (r *redis) start() {
	r.t.Helper()
	server, err := exec.LookPath("redis-server")
	if err != nil {
		server, err = exec.LookPath("valkey-server")
	}
	if err != nil {
		r.t.Fatalf("%v: run make redis", cmp.Or(err, exec.ErrNotFound))
	}
	_, port, _ := strings.Cut(r.addr, ":")
	r.cmd = exec.Command(server, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", r.t.TempDir())
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *redis) stop() {
	if r.cmd != nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
		r.cmd = nil
	}
}

const centralEndings = `
apiVersion: weir/v1
trust: [all]
fleet: {scope: node}
providers:
  openai: {upstream: "UPSTREAM", models: {"big": {rpd: 1, burst: 100%, scope: central}, "*": {rps: 1000}}}
limits:
  tenant:
    retries: {rph: 4, burst: 100%, scope: central}
    waits: {rps: 2, burst: 100%, scope: central}
    default: {rpm: 1_000, burst: 100%, scope: central}
degrade: {big: small}
classes:
  patient: {priority: 3, on_limit: queue, wait: 20s}
  smaller: {priority: 2, on_limit: degrade}
  plain: {priority: 1}
`

// In a real Envoy a stream is let go, answered or rewritten after the control plane has answered; so is an attempt of Envoy's own.
func TestCentralEndings(t *testing.T) {
	t.Parallel()
	provider := &script{came: map[string][]http.Header{}}
	up := httptest.NewServer(provider)
	defer up.Close()
	s := &centralFleet{split: newSplit(t, strings.ReplaceAll(centralEndings, "UPSTREAM", up.URL)), store: "bolt:" + filepath.Join(t.TempDir(), "weir.db")}
	s.control()
	proxy := s.startNode("egress-1")
	chat := func(tenant, class, model, script string) (int, http.Header) {
		body := `{"model":"` + model + `","max_tokens":2,"messages":[{"role":"user","content":"hi"}]}`
		status, h, err := ask("POST", "http://"+proxy+"/openai/v1/chat/completions", body,
			"x-tenant", tenant, "x-priority", class, "x-script", script, "content-type", "application/json")
		if err != nil {
			t.Fatal(err)
		}
		return status, h
	}
	if got, h := chat("retries", "plain", "m", "one=503,503,200"); got != 200 || len(provider.attempts("one")) != 3 {
		t.Errorf("three attempts: %d after %d, %v", got, len(provider.attempts("one")), h)
	}
	if got, h := chat("retries", "plain", "m", "two=503,200"); got != 429 || h.Get("x-weir-reason") != "limit_exceeded" || h.Get("x-weir-tier") != "tenant" || len(provider.attempts("two")) != 1 {
		t.Errorf("a retry that has no room: %d after %d, %v", got, len(provider.attempts("two")), h)
	}
	if got, h := chat("a", "smaller", "big", "three=200"); got != 200 || h.Get("x-weir-model") != "" {
		t.Errorf("the first: %d %v", got, h)
	}
	if got, h := chat("a", "smaller", "big", "four=200"); got != 200 || h.Get("x-weir-model") != "small" {
		t.Errorf("the second goes to a smaller model: %d %v", got, h)
	}
	if got, h := chat("a", "plain", "big", "five=200"); got != 429 || h.Get("x-weir-tier") != "provider" || h.Get("x-weir-reason") != "quota_exhausted" {
		t.Errorf("the third does not: %d %v", got, h)
	}
	begin := time.Now()
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			if got, h := chat("waits", "patient", "m", fmt.Sprintf("w%d=200", i)); got != 200 {
				t.Errorf("who waits: %d %v", got, h)
			}
		})
	}
	all.Wait()
	if took := time.Since(begin); took < 1900*time.Millisecond || took > 8*time.Second {
		t.Errorf("six requests at two a second took %v", took)
	}
}
