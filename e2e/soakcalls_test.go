// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"time"
)

const (
	soakCallers  = 16
	soakPatience = 90 * time.Second // within which everybody has an answer, whatever stands still meanwhile
)

// A soakCall is a request as its caller saw it.
type soakCall struct {
	tag, kind, tenant string
	status            int
	decision          string
	from              time.Time
	took              time.Duration
	hung, left        bool  // no answer within the patience; gone on purpose
	whole             bool  // the answer was read to its end
	sent              int64 // bytes of the request's body
	read              int   // bytes of the answer's
	provokes          bool  // the provider is told to fail, so 5xx is its
	honest            bool  // the usage in the answer is what was used
	problem           string
	reservation       string
}

// A plan is a request that is going to be made.
type plan struct {
	*soakCall
	r       *rand.Rand
	path    string
	body    []byte
	headers map[string]string
	leave   time.Duration // when its caller leaves; 0: never
	pause   time.Duration // of a reader, after each 64 KiB
	trickle bool          // the body comes in pieces
}

// caller makes one request after another, of all kinds.
func (s *soak) caller(r *rand.Rand, i int, end time.Time) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true}}
	defer client.CloseIdleConnections()
	ticket := "" // of a fan-out, whose branches come next or never
	for time.Now().Before(end) {
		p := s.plan(r, i)
		if ticket != "" && p.tenant == "ledger-1" {
			p.headers["x-weir-reservation"] = ticket
		}
		if s.make(client, p); p.reservation != "" {
			ticket = p.reservation
		}
		s.mu.Lock()
		s.done = append(s.done, *p.soakCall)
		s.mu.Unlock()
		if r.IntN(50) == 0 {
			client.CloseIdleConnections()
		}
		time.Sleep(time.Duration(r.IntN(120)) * time.Millisecond)
	}
}

var reservationID = regexp.MustCompile(`^{"reservation":"([0-9a-f]{32})"`)

// pieces is a body that comes in pieces.
type pieces struct{ p *plan }

func (b pieces) Read(to []byte) (int, error) {
	if len(b.p.body) == 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Duration(b.p.r.IntN(10)) * time.Millisecond)
	n := copy(to[:min(len(to), max(len(b.p.body)/16, 1+b.p.r.IntN(64)))], b.p.body)
	b.p.body = b.p.body[n:]
	return n, nil
}

// make makes the request and reads the answer, each in its way.
func (s *soak) make(client *http.Client, p *plan) {
	ctx, cancel := context.WithTimeout(context.Background(), soakPatience)
	defer cancel()
	if p.leave > 0 {
		timer := time.AfterFunc(p.leave, cancel)
		defer timer.Stop()
	}
	p.sent = int64(len(p.body))
	var body io.Reader = bytes.NewReader(p.body)
	if p.trickle {
		body = pieces{p}
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.proxy+p.path, body)
	if err != nil {
		panic(err)
	}
	q.Header.Set("content-type", "application/json")
	q.Header.Set("x-tenant", p.tenant)
	q.Header.Set("x-mock-tag", p.tag)
	for name, value := range p.headers {
		q.Header.Set(name, value)
	}
	resp, err := client.Do(q)
	if err == nil {
		p.status, p.decision = resp.StatusCode, resp.Header.Get("x-weir-decision")
		err = p.readAll(resp)
	}
	p.took = time.Since(p.from)
	p.whole = err == nil
	p.left = ctx.Err() == context.Canceled
	p.hung = ctx.Err() == context.DeadlineExceeded
	if err != nil && !p.left {
		p.problem = err.Error()
	}
}

func (p *plan) readAll(resp *http.Response) error {
	defer resp.Body.Close()
	b := make([]byte, 64<<10)
	var first []byte
	for {
		n, err := resp.Body.Read(b)
		p.read += n
		if len(first) < 200 {
			first = append(first, b[:min(n, 200)]...)
		}
		if err == io.EOF {
			if resp.StatusCode >= 500 {
				p.problem = string(first)
			}
			if m := reservationID.FindSubmatch(first); m != nil {
				p.reservation = string(m[1])
			}
			return nil
		}
		if err != nil {
			return err
		}
		time.Sleep(p.pause)
	}
}
