// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A tap stands between a client and weir, passes on every byte as it is, and notes each request and how it was answered: what a
// library does by itself is seen nowhere else.
type tap struct {
	addr string
	mu   sync.Mutex
	list []*attempt
}

// An attempt is one request that a library sent.
type attempt struct {
	at, answered time.Time
	status       int           // 0: the client left before
	reason       string        // x-weir-reason
	decision     string        // x-weir-decision
	wait         time.Duration // what the answer told it to wait
}

func startTap(t *testing.T, to string) *tap {
	t.Helper()
	p := new(tap)
	p.addr = between(t, to, func(caller, server net.Conn) { p.join(caller.(*net.TCPConn), server.(*net.TCPConn)) })
	return p
}

// join passes bytes both ways, and reads along. On one connection answers come in the order of the requests.
func (p *tap) join(caller, server *net.TCPConn) {
	open := make(chan *attempt, 100)
	go pass(server, caller, func(b *bufio.Reader) (io.Reader, error) {
		r, err := http.ReadRequest(b)
		if err != nil {
			return nil, err
		}
		a := &attempt{at: time.Now()}
		p.mu.Lock()
		p.list = append(p.list, a)
		p.mu.Unlock()
		open <- a
		return r.Body, nil
	})
	go pass(caller, server, func(b *bufio.Reader) (io.Reader, error) {
		r, err := http.ReadResponse(b, nil)
		if err != nil {
			return nil, err
		}
		p.answered(<-open, r)
		return r.Body, nil
	})
}

func (p *tap) answered(a *attempt, r *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ms, _ := strconv.ParseInt(r.Header.Get("retry-after-ms"), 10, 64)
	a.answered, a.status, a.reason = time.Now(), r.StatusCode, r.Header.Get("x-weir-reason")
	a.decision = r.Header.Get("x-weir-decision")
	a.wait = time.Duration(ms) * time.Millisecond
}

// pass copies what comes to its destination. It holds back the head of each message until that is noted, so that nobody knows of
// it before the test does.
func pass(to, from *net.TCPConn, head func(*bufio.Reader) (body io.Reader, err error)) {
	g := &gate{to: to}
	b := bufio.NewReader(io.TeeReader(from, g))
	for {
		g.open = false
		body, err := head(b)
		g.let()
		if err != nil {
			break
		}
		_, _ = io.Copy(io.Discard, body)
	}
	_, _ = io.Copy(io.Discard, b) // what is no HTTP still passes
	_ = to.CloseWrite()
}

// A gate keeps what is written to it until it is opened.
type gate struct {
	to   io.Writer
	open bool
	held bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	if g.open {
		return g.to.Write(p)
	}
	return g.held.Write(p)
}

func (g *gate) let() {
	g.open = true
	_, _ = g.held.WriteTo(g.to)
}

// take gives the attempts since it was last asked.
func (p *tap) take() (list []attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.list {
		list = append(list, *a)
	}
	p.list = nil
	return list
}
