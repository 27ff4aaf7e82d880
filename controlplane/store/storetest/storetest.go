// SPDX-License-Identifier: Apache-2.0

// Package storetest starts a real Redis for tests.
package storetest

import (
	"net"
	"os/exec"
	"testing"
	"time"
)

// A Server is a Redis of a test's own.
type Server struct {
	Addr string
	Dir  string

	t    testing.TB
	cmd  *exec.Cmd
	args []string
}

// Redis starts one on a free port, with nothing on disk, until the test ends. args are as on its command line.
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: l.Addr().String(), Dir: t.TempDir(), t: t, args: args}
	l.Close()
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Port is the port of the address.
func (s *Server) Port() string { _, port, _ := net.SplitHostPort(s.Addr); return port }

// Start starts it again at the same address.
func (s *Server) Start() {
	s.t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if path, err = exec.LookPath("valkey-server"); err != nil {
			s.t.Fatal("there is no redis-server: install it (Debian, Ubuntu: apt-get install redis-server; macOS: brew install redis)")
		}
	}
	args := append([]string{"--port", s.Port(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.Dir}, s.args...)
	s.cmd = exec.Command(path, args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", s.Addr)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s %v does not listen on %s", path, args, s.Addr)
		}
	}
}

// Stop ends it.
func (s *Server) Stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// PID is its process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// URL is its address for weir.
func (s *Server) URL() string { return "redis://" + s.Addr }
