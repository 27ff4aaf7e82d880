// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/envoy/envoytest"
	"github.com/weirproxy/weir/policyfile"
)

// A rig is a control plane, an Envoy and an upstream.
type rig struct {
	*plane
	envoy    *envoy.Process
	listener string
	up       *httptest.Server
	calls    atomic.Int32
	release  chan struct{} // lets a stream go on
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{release: make(chan struct{})}
	r.up = httptest.NewServer(http.HandlerFunc(r.upstream))
	t.Cleanup(r.up.Close)
	r.plane = run(t, r.policy("1"), nil)
	b, err := envoy.Bootstrap(envoy.BootstrapOptions{NodeID: "n", XDSAddr: r.xds, WasmPath: envoytest.Plugin(t)})
	must(t, err)
	r.envoy = envoytest.Run(t, b)
	r.listener, err = r.envoy.Listener(t.Context(), translate.ListenerName)
	must(t, err)
	return r
}

// policy is one with a limit; more is text to put after it.
func (r *rig) policy(rpm string, more ...string) string {
	return fmt.Sprintf(`apiVersion: weir/v1
providers:
  tools: {upstream: "%s/base", dialect: generic}
limits: {tenant: {default: {rpm: %s}}}
%s`, r.up.URL, rpm, strings.Join(more, "\n"))
}

func (r *rig) upstream(w http.ResponseWriter, q *http.Request) {
	r.calls.Add(1)
	switch q.URL.Path {
	case "/base/fail":
		w.WriteHeader(http.StatusServiceUnavailable)
	case "/base/stream":
		fmt.Fprintln(w, "first")
		w.(http.Flusher).Flush()
		<-r.release
		fmt.Fprintln(w, "last")
	case "/base/body":
		n, err := io.Copy(io.Discard, q.Body)
		fmt.Fprint(w, n, err)
	default:
		q.Header.Set("Host", q.Host)
		q.Header.Set("Path", q.RequestURI)
		_ = q.Header.Write(w)
	}
}

// do sends a request to the Envoy; headers are names and values in turn.
func (r *rig) do(method, path string, body io.Reader, headers ...string) (*http.Response, string) {
	r.t.Helper()
	q, err := http.NewRequest(method, "http://"+r.listener+path, body)
	must(r.t, err)
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(q)
	must(r.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(r.t, err)
	return resp, string(b)
}

// hash is what the stand-in answers with when it has a policy.
func hash(t *testing.T, content string) string {
	t.Helper()
	p, err := policyfile.Parse("policy.yaml", []byte(content))
	must(t, err)
	h := fnv.New32a()
	h.Write(p.JSON)
	return fmt.Sprintf("%08x", h.Sum32())
}

// applied waits until requests are answered by a policy, and says how long it took.
func (r *rig) applied(content string) time.Duration {
	r.t.Helper()
	began := time.Now()
	for want := hash(r.t, content); ; time.Sleep(2 * time.Millisecond) {
		resp, _ := r.do("GET", "/tools/x", nil)
		if resp.Header.Get("x-standin-config") == want && resp.StatusCode == 200 {
			return time.Since(began)
		}
		if time.Since(began) > 10*time.Second {
			r.t.Fatalf("not applied after %v: %+v\n%s", time.Since(began), r.status(), r.log)
		}
	}
}

func TestRealEnvoy(t *testing.T) {
	r := newRig(t)
	r.applied(r.policy("1"))
	t.Run("requests", r.requests)
	t.Run("bodies", r.bodies)
	t.Run("metrics", r.metrics)
	t.Run("changes", r.changes)
	t.Run("streams", r.streams)
	t.Run("rejection", r.rejection)
	t.Run("restart", r.restart)
}

func (r *rig) requests(t *testing.T) {
	_, got := r.do("GET", "/tools/model/a%2Fb%3A0/invoke?q=a%2Fb", nil, "x-request-id", "mine", "x-forwarded-for", "9.9.9.9")
	for _, want := range []string{"Path: /base/model/a%2Fb%3A0/invoke?q=a%2Fb\r", "Host: " + r.up.Listener.Addr().String(), "X-Request-Id: mine"} {
		if !strings.Contains(got, want) {
			t.Errorf("upstream got %q, want %q in it", got, want)
		}
	}
	for _, not := range []string{"X-Forwarded", "X-Envoy"} {
		if strings.Contains(got, not) {
			t.Errorf("upstream got %q, want no %s in it", got, not)
		}
	}
	resp, _ := r.do("GET", "/tools", nil, "x-forwarded-for", "9.9.9.9")
	if source := resp.Header.Get("x-standin-source"); !strings.HasPrefix(source, "127.0.0.1:") {
		t.Errorf("the filter sees the source %q, want the peer's", source)
	}
	// A caller cannot make Envoy send a request again that it would not: a write without a key.
	before := r.calls.Load()
	r.do("POST", "/tools/fail", nil, "x-envoy-retry-on", "5xx", "x-envoy-max-retries", "3")
	if n := r.calls.Load() - before; n != 1 {
		t.Errorf("sent %d times, want once", n)
	}
	for path, want := range map[string]int{"/toolsmith": 404, "/tools/a%2F..%2F..%2Fb": 400} {
		if resp, _ := r.do("GET", path, nil); resp.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, resp.StatusCode, want)
		}
	}
}

// bodies are held by the stand-in until they are whole, as the filter does: here up to body.parse, for nothing depends on what stands
// behind that.
func (r *rig) bodies(t *testing.T) {
	for size, want := range map[int]int{1<<20 + 1<<19: 200, 3 << 20: 413} {
		if resp, got := r.do("POST", "/tools/body", bytes.NewReader(make([]byte, size)), "x-standin", "hold"); resp.StatusCode != want {
			t.Errorf("held %d: got %d %q, want %d", size, resp.StatusCode, got, want)
		}
	}
	if _, got := r.do("POST", "/tools/body", bytes.NewReader(make([]byte, 20<<20))); got != fmt.Sprint(20<<20, nil) {
		t.Errorf("not held: got %q", got)
	}
}

func (r *rig) metrics(t *testing.T) {
	b, err := r.envoy.Get(t.Context(), "/stats/prometheus")
	must(t, err)
	for _, want := range []string{
		`weir_requests_total{weir_decision="admit",weir_reason="ok",weir_tier="tenant",weir_dimension="tpm"} `,
		`envoy_cluster_upstream_rq_total{envoy_cluster_name="weir_tools"} `,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("want %s in the metrics", want)
		}
	}
}

func (r *rig) changes(t *testing.T) {
	var slowest time.Duration
	for i := range 10 {
		content := r.policy(fmt.Sprint(10 + i))
		r.write(content)
		slowest = max(slowest, r.applied(content))
	}
	t.Logf("slowest of 10 changes: %v", slowest)
	if slowest > time.Second {
		t.Errorf("a change took %v", slowest)
	}
	r.write(r.policy("1", "oops: 1"))
	r.eventually("a problem", func(st Status) bool { return st.Problem != nil })
	if d := r.applied(r.policy("19")); d > time.Second {
		t.Errorf("the last good policy was away for %v", d)
	}
}

// streams go on whatever the policy does to their limits, their provider's address, or their provider.
func (r *rig) streams(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(r.upstream))
	defer elsewhere.Close()
	gone := fmt.Sprintf("apiVersion: weir/v1\nproviders: {others: {upstream: %q, dialect: generic, prefix: /tools/x}}\n", elsewhere.URL)
	for name, content := range map[string]string{
		"limits":   r.policy("77"),
		"address":  strings.ReplaceAll(r.policy("78"), r.up.URL, elsewhere.URL),
		"provider": gone,
		"cap":      r.policy("79", "body: {hold: 32MiB}"),
	} {
		r.write(r.policy("1"))
		r.applied(r.policy("1"))
		resp, err := http.Get("http://" + r.listener + "/tools/stream")
		must(t, err)
		body := bufio.NewReader(resp.Body)
		if line, err := body.ReadString('\n'); err != nil || line != "first\n" {
			t.Fatalf("%s: got %q, %v", name, line, err)
		}
		r.write(content)
		r.applied(content)
		r.release <- struct{}{}
		if rest, err := io.ReadAll(body); err != nil || string(rest) != "last\n" {
			t.Errorf("%s: got %q, %v", name, rest, err)
		}
		must(t, resp.Body.Close())
	}
	r.write(r.policy("1"))
	r.applied(r.policy("1"))
}

func (r *rig) rejection(t *testing.T) {
	r.write(r.policy("2", "secret: refuse-me"))
	st := r.eventually("rejected", func(st Status) bool { return len(st.Nodes) == 1 && st.state(&st.Nodes[0]) == "rejecting" })
	if st.Policy.Version == st.Nodes[0].Policy {
		t.Errorf("got %+v, want the node on the old policy", st)
	}
	r.told("", "Unable to create Wasm plugin")
	r.want("/metrics", 200, `weir_controlplane_nacks_total{type="filter"} 1`)
	r.want("/metrics", 200, `weir_controlplane_nodes{state="rejecting"} 1`)
	r.applied(r.policy("1"))
	r.write(r.policy("3"))
	r.applied(r.policy("3"))
	r.eventually("current", func(st Status) bool { return st.state(&st.Nodes[0]) == "current" })
}

// restart ends the control plane and starts it again at the same address.
func (r *rig) restart(t *testing.T) {
	r.stop()
	r.applied(r.policy("3"))
	time.Sleep(100 * time.Millisecond) // Envoy finds nobody there
	c := r.s.config
	var err error
	c.XDS, err = net.Listen("tcp", r.xds)
	must(t, err)
	c.Status = []net.Listener{listen(t)}
	before := r.log.String()
	r.start(c)
	r.eventually("there again", func(st Status) bool {
		return len(st.Nodes) == 1 && st.state(&st.Nodes[0]) == "current" && len(st.Nodes[0].Types) == 5
	})
	if again := r.log.String()[len(before):]; strings.Contains(again, "type=filter") {
		t.Errorf("the filter was sent again, though Envoy has it:\n%s", again)
	}
	r.write(r.policy("4"))
	t.Logf("a change after the restart took %v", r.applied(r.policy("4")))
}
