// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const good = `apiVersion: weir/v1
providers:
  tools: {upstream: "http://127.0.0.1:1", dialect: generic}
`

const bad = good + `limits: {tenant: {"<b>": {rpm: seven}}}
`

func TestReady(t *testing.T) {
	var more atomic.Value
	more.Store("Envoy is not there yet")
	p := run(t, bad, func(c *Config) {
		c.Ready = func() error {
			if s := more.Load().(string); s != "" {
				return errors.New(s)
			}
			return nil
		}
	})
	p.eventually("read", func(st Status) bool { return st.Problem != nil })
	p.want("/readyz", 503, "no policy: "+p.file+":4:")
	p.want("/livez", 200, "alive")
	p.write(good)
	p.eventually("loaded", func(st Status) bool { return st.Policy != nil })
	p.want("/readyz", 503, "Envoy is not there yet")
	more.Store("")
	p.want("/readyz", 200, "ready")
	p.write(bad)
	p.eventually("bad again", func(st Status) bool { return st.Problem != nil })
	p.want("/readyz", 200, "ready") // the last good policy is served
}

func (p *plane) want(path string, code int, part string) {
	p.t.Helper()
	if got, body := p.get(path); got != code || !strings.Contains(body, part) {
		p.t.Errorf("%s: got %d %q, want %d with %q in it", path, got, body, code, part)
	}
}

func TestStatus(t *testing.T) {
	p := run(t, good, nil)
	first := p.eventually("loaded", func(st Status) bool { return st.Policy != nil })
	if !first.Ready || first.File != p.file || first.Problem != nil || first.Policy.Mode != "enforce" || len(first.Nodes) != 0 {
		t.Errorf("got %+v", first)
	}
	p.write(bad)
	st := p.eventually("bad", func(st Status) bool { return st.Problem != nil })
	if e := st.Problem.Errors; len(e) != 1 || e[0].Line != 4 || e[0].File != p.file || !strings.Contains(e[0].Path, "rpm") {
		t.Errorf("got %+v, want the place of the error", st.Problem)
	}
	if st.Policy.Version != first.Policy.Version {
		t.Error("the last good policy has not stayed")
	}
	p.want("/", 200, "needs JavaScript") // what it shows of this a browser tests
	p.want("/metrics", 200, "weir_controlplane_policy_broken 1")
	p.want("/metrics", 200, `weir_controlplane_policy_loads_total{result="failed"} 1`)
	p.want("/metrics", 200, `weir_controlplane_nodes{state="current"} 0`)
	p.want("/none", 404, "")

	p.write(good + "# only a comment more\n")
	st = p.eventually("good", func(st Status) bool { return st.Problem == nil })
	if st.Policy.Version != first.Policy.Version || !st.Policy.LoadedAt.Equal(first.Policy.LoadedAt) {
		t.Errorf("got %+v, want what was there before: %+v", st.Policy, first.Policy)
	}
	p.write(strings.ReplaceAll(good, "http://127.0.0.1:1", "http://127.0.0.1:99999"))
	p.eventually("untranslatable", func(st Status) bool { return st.Problem != nil && strings.Contains(st.Problem.Message, "99999") })
	must(t, os.Remove(p.file))
	p.eventually("gone", func(st Status) bool { return st.Problem != nil && strings.Contains(st.Problem.Message, "no such file") })
	p.want("/readyz", 200, "ready")
}

func TestOtherSitesAreKeptOut(t *testing.T) {
	p := run(t, good, nil)
	port := p.url[strings.LastIndexByte(p.url, ':'):]
	for host, want := range map[string]int{
		"127.0.0.1" + port: 200, "localhost" + port: 200, "[::1]" + port: 200, "localhost": 200,
		"evil.example" + port: 421, "evil.example": 421, "localhost.evil.example": 421, "10.0.0.1": 421,
	} {
		req, err := http.NewRequest(http.MethodGet, p.url+"/api/status", http.NoBody)
		must(t, err)
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		must(t, resp.Body.Close())
		if resp.StatusCode != want {
			t.Errorf("%s: got %d, want %d", host, resp.StatusCode, want)
		}
	}
}

func TestRequireLoopback(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "localhost:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "localhost.example:1": false, "127.0.0.1": false,
	} {
		err := RequireLoopback(addr)
		if (err == nil) != ok {
			t.Errorf("%s: got %v", addr, err)
		}
	}
	var open *OpenError
	if err := RequireLoopback(":80"); !errors.As(err, &open) || !strings.Contains(open.Hint(), "127.0.0.1:PORT") {
		t.Errorf("got %v", err)
	}
}

func TestNewChecksItsConfig(t *testing.T) {
	l := listen(t)
	defer l.Close()
	full := Config{PolicyFile: "p", XDS: l, Status: []net.Listener{l}, Listen: "127.0.0.1:0"}
	if _, err := New(full); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"no policy file":  func(c *Config) { c.PolicyFile = "" },
		"needs listeners": func(c *Config) { c.XDS = nil },
		"write host:port": func(c *Config) { c.Listen = "" },
	} {
		c := full
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestRunEndsWhenItCannotServe(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"xds":    func(c *Config) { c.XDS.Close() },
		"status": func(c *Config) { c.Status[0].Close() },
	} {
		c := Config{PolicyFile: t.TempDir(), XDS: listen(t), Status: []net.Listener{listen(t)}, Listen: "127.0.0.1:0"}
		spoil(&c)
		s, err := New(c)
		must(t, err)
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want one of %s", err, name)
		}
	}
}

func TestNothingIsLeft(t *testing.T) {
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	c := Config{PolicyFile: t.TempDir(), XDS: listen(t), Status: []net.Listener{listen(t)}, Listen: "127.0.0.1:0"}
	s, err := New(c)
	must(t, err)
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	resp, err := http.Get("http://" + c.Status[0].Addr().String() + "/livez") // leaves an idle connection
	must(t, err)
	must(t, resp.Body.Close())
	cancel()
	must(t, <-done)
	if _, err := c.XDS.Accept(); err == nil {
		t.Error("still listens")
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines before, %d now:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
	}
}
