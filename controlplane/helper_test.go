// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy/envoytest"
)

// A plane is a running control plane.
type plane struct {
	t    *testing.T
	s    *Server
	file string
	url  string // of the status address
	xds  string
	log  *envoytest.Log
	stop func() // may be called more than once
}

// run runs a control plane until the test ends. change may change its configuration.
func run(t *testing.T, content string, change func(*Config)) *plane {
	t.Helper()
	p := &plane{t: t, file: filepath.Join(t.TempDir(), "policy.yaml"), log: new(envoytest.Log)}
	p.write(content)
	c := Config{
		PolicyFile: p.file, XDS: listen(t), Status: []net.Listener{listen(t)}, Listen: "127.0.0.1:0",
		Poll: 20 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(p.log, nil)),
	}
	if change != nil {
		change(&c)
	}
	p.start(c)
	return p
}

func (p *plane) start(c Config) {
	p.t.Helper()
	p.url, p.xds = "http://"+c.Status[0].Addr().String(), c.XDS.Addr().String()
	s, err := New(c)
	must(p.t, err)
	p.s = s
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Run(ctx); err != nil {
			p.t.Errorf("run: %v", err)
		}
	}()
	p.stop = func() { cancel(); <-done }
	p.t.Cleanup(p.stop)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return l
}

// write writes the policy file as an editor does.
func (p *plane) write(content string) {
	p.t.Helper()
	must(p.t, os.WriteFile(p.file+"~", []byte(content), 0o600))
	must(p.t, os.Rename(p.file+"~", p.file))
}

func (p *plane) get(path string) (int, string) {
	p.t.Helper()
	resp, err := http.Get(p.url + path)
	must(p.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(p.t, err)
	return resp.StatusCode, string(b)
}

// status asks for the status as its readers do.
func (p *plane) status() Status {
	p.t.Helper()
	_, body := p.get("/api/status")
	var st Status
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	must(p.t, d.Decode(&st))
	return st
}

// eventually waits until something holds for the status.
func (p *plane) eventually(what string, holds func(Status) bool) Status {
	p.t.Helper()
	end := time.Now().Add(10 * time.Second)
	for {
		st := p.status()
		if holds(st) {
			return st
		}
		if time.Now().After(end) {
			p.t.Fatalf("never %s: %+v\n%s", what, st, p.log)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// told waits until the page is told something, and gives all that it is told then.
func (p *plane) told(token, part string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/events", http.NoBody)
	must(p.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	must(p.t, err)
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for last := ""; ; {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, part) {
			return line
		}
		if err != nil {
			p.t.Fatalf("the page is never told %s: %v\n%s", part, err, last)
		}
		last = line
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
