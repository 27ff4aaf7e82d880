// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
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
	wait         time.Duration // what the answer told it to wait
}

func startTap(t *testing.T, to string) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &tap{addr: l.Addr().String()}
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
			p.join(caller.(*net.TCPConn), server.(*net.TCPConn))
		}
	}()
	return p
}

// join passes bytes both ways, and reads along. On one connection answers come in the order of the requests.
func (p *tap) join(caller, server *net.TCPConn) {
	open := make(chan *attempt, 100)
	pass(server, caller, func(b *bufio.Reader) error {
		r, err := http.ReadRequest(b)
		if err != nil {
			return err
		}
		a := &attempt{at: time.Now()}
		p.mu.Lock()
		p.list = append(p.list, a)
		p.mu.Unlock()
		open <- a
		_, err = io.Copy(io.Discard, r.Body)
		return err
	})
	pass(caller, server, func(b *bufio.Reader) error {
		r, err := http.ReadResponse(b, nil)
		if err != nil {
			return err
		}
		p.answered(<-open, r)
		_, err = io.Copy(io.Discard, r.Body)
		return err
	})
}

func (p *tap) answered(a *attempt, r *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ms, _ := strconv.ParseInt(r.Header.Get("retry-after-ms"), 10, 64)
	a.answered, a.status, a.reason = time.Now(), r.StatusCode, r.Header.Get("x-weir-reason")
	a.wait = time.Duration(ms) * time.Millisecond
}

// pass copies what comes to its destination until one of the two closes, and has read read it along.
func pass(to, from *net.TCPConn, read func(*bufio.Reader) error) {
	copied, w := io.Pipe()
	go func() {
		_, _ = io.Copy(to, io.TeeReader(from, w))
		_ = to.CloseWrite()
		w.Close()
	}()
	go func() {
		b := bufio.NewReader(copied)
		for read(b) == nil {
		}
		_, _ = io.Copy(io.Discard, b) // what cannot be read still passes
	}()
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
