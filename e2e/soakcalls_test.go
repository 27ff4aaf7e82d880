// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
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
	hung, left        bool // no answer within the patience; gone on purpose
	whole             bool // the answer was read to its end
	read              int  // bytes of its body
	provokes          bool // the provider is told to fail, so 5xx is its
	honest            bool // the usage in the answer is what was used
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

var soakTenants = []string{"exact", "exact", "few", "moving", "moving", "ledger-0", "ledger-1", "ledger-2", "ledger-0", "ledger-1", "ledger-2", "crowd"}

// plan chooses a request.
func (s *soak) plan(r *rand.Rand, i int) *plan {
	now := time.Now()
	p := &plan{r: r, path: "/openai/v1/chat/completions", headers: map[string]string{}, soakCall: &soakCall{
		kind: "plain", tenant: soakTenants[r.IntN(len(soakTenants))], from: now, honest: true,
	}}
	output := 1 + r.IntN(200)
	stream := r.IntN(3) == 0
	text := "hi"
	p.headers["x-mock-input-tokens"] = strconv.Itoa(inputOfHi)
	p.headers["x-user"] = fmt.Sprint("user-", i)
	if r.IntN(3) == 0 {
		p.headers["x-priority"] = []string{"critical", "normal", "hasty"}[r.IntN(3)]
	}
	if r.IntN(4) == 0 {
		p.headers["x-mock-latency"] = fmt.Sprint(r.IntN(400), "ms")
	}
	if stream {
		p.kind = "stream"
		p.headers["x-mock-chunks"], p.headers["x-mock-chunk-delay"] = strconv.Itoa(1+r.IntN(40)), fmt.Sprint(r.IntN(15), "ms")
	}
	p.body = fmt.Appendf(nil, `{"model":"gpt-4o","max_tokens":%d,"stream":%v,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":%q}]}`, output, stream, text)
	if !stream {
		p.body = bytes.Replace(p.body, []byte(`"stream_options":{"include_usage":true},`), nil, 1)
	}
	if p.tenant != "exact" && p.tenant != "moving" { // of these the provider sees what weir charges, to the token, and nothing else
		s.vary(p)
	}
	p.tag = fmt.Sprintf("%s@%d", p.tenant, now.UnixNano()/100*100+int64(i))
	return p
}

// vary makes of most plans something that nobody likes.
func (s *soak) vary(p *plan) {
	r := p.r
	switch r.IntN(24) {
	case 0, 1, 2:
		p.kind, p.leave = p.kind+" left", time.Duration(r.IntN(500))*time.Millisecond
	case 3:
		p.kind, p.pause = "slow reader", time.Duration(1+r.IntN(20))*time.Millisecond
		p.headers["x-mock-body-bytes"] = strconv.Itoa(r.IntN(3 << 20))
	case 4:
		p.kind, p.body, p.tenant = "huge", append(p.body, bytes.Repeat([]byte(" "), r.IntN(5<<20))...), "ledger-0"
		p.trickle = r.IntN(4) == 0
	case 5, 6:
		p.kind, p.body, p.honest = "hostile", mutate(r, p.body), false
	case 7:
		p.kind, p.honest, p.provokes, p.tenant = "wild", false, true, "crowd"
		p.path = []string{"/wild", "/feral"}[r.IntN(2)] + "/v1/chat/completions"
	case 8:
		p.kind, p.provokes, p.honest = "failing", true, false
		p.headers["x-mock-status"] = []string{"400", "404", "500", "503"}[r.IntN(4)] // 429 would close the pool: see storm
	case 9:
		p.kind, p.provokes, p.honest = "cut", true, false
		p.headers["x-mock-cut"] = []string{"headers", "middle"}[r.IntN(2)]
	case 10:
		p.kind, p.honest = "lying", false
		p.headers["x-mock-usage"] = []string{"none", "null", "zero", "negative", "huge"}[r.IntN(5)]
	case 11:
		p.tenant = fmt.Sprint("once-", r.Uint64())
		p.headers["x-user"] = fmt.Sprint("user-", r.Uint64())
		p.headers["x-tree"] = fmt.Sprint("tree-", r.Uint64())
	case 12:
		p.kind, p.path, p.honest = "endpoint", "/.weir/reserve", false
		p.body = fmt.Appendf(nil, `{"provider":"openai","branches":%d,"model":"gpt-4o","input_tokens":10,"max_tokens":20,"tools":{"search":%d}}`, 1+r.IntN(5), r.IntN(3))
		if p.tenant = "ledger-1"; r.IntN(3) == 0 {
			p.body = mutate(r, p.body)
		}
	case 13:
		p.kind, p.path, p.honest = "tool", "/search/q", false
	case 14:
		p.kind, p.honest = "anthropic", false
		p.path = "/anthropic/v1/messages"
	case 15:
		p.kind, p.trickle = "trickle", true
		if r.IntN(2) == 0 {
			p.leave = time.Duration(r.IntN(100)) * time.Millisecond
		}
	}
	if s.storm.Load() && r.IntN(2) == 0 {
		p.kind, p.path, p.provokes, p.honest = "storm", "/stormy/v1/chat/completions", true, false
		p.headers["x-mock-status"], p.headers["x-mock-retry-after"] = []string{"429", "429", "503", "529"}[r.IntN(4)], []string{"0", "1", "2", "x", "0.1"}[r.IntN(5)]
	}
	p.honest = p.honest && p.leave == 0
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
