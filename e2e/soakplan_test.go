// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

var soakTenants = []string{"exact", "exact", "few", "central", "central", "moving", "moving", "ledger-0", "ledger-1", "ledger-2", "ledger-0", "ledger-1", "ledger-2", "crowd"}

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
		p.kind, p.honest = "lying "+p.kind, false
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
