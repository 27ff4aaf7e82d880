// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"
)

// A gap is a way to a server that can be closed: connections stay, and nothing passes.
type gap struct {
	addr   string
	closed atomic.Bool
}

func startGap(t *testing.T, to string) *gap {
	t.Helper()
	g := new(gap)
	g.addr = between(t, to, func(a, b net.Conn) {
		go g.pass(a, b)
		go g.pass(b, a)
	})
	return g
}

// between listens until the test ends, and joins each caller to a connection of its own to a server.
func between(t *testing.T, to string, join func(caller, server net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			caller, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				caller.Close()
				continue
			}
			join(caller, server)
		}
	}()
	return l.Addr().String()
}

func (g *gap) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		for n > 0 && g.closed.Load() { // what has been sent arrives late
			time.Sleep(20 * time.Millisecond)
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// startRedis starts a Redis of the test's own.
func startRedis(t *testing.T) (addr string, p *os.Process) {
	t.Helper()
	addr = freePort(t)
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, 10*time.Second, func() (bool, string) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false, err.Error()
		}
		return c.Close() == nil, ""
	})
	return addr, cmd.Process
}
