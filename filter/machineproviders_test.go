// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/filter/filtertest"
)

// answer has a provider do something about a call: answer it, or not, and then Envoy may send it again.
func (m *machine) answer() {
	c := m.those(func(c *caller) bool { return c.sending != nil && c.x.Reply == nil && !c.answered })
	if c == nil {
		return
	}
	status := []int{200, 200, 200, 400, 429, 503, 0}[m.pick("status", 7)]
	var headers [][2]string
	if status == 429 && m.pick("told", 2) == 0 {
		headers = append(headers, [2]string{"retry-after", "1"})
	}
	m.disturb(c.which)
	again := status == 0 || c.x.Fails(status, headers...) && status >= 429
	if again && m.pick("again", 3) > 0 && c.x.Attempts < 4 {
		m.attempt(c)
		return
	}
	if status == 0 {
		status = 503
	}
	m.finish(c, status, headers)
}

// attempt has Envoy send a request.
func (m *machine) attempt(c *caller) {
	was := c.sending
	if was != nil {
		was.open = false
	}
	c.sending = sendingOf(m.p.Clock, c.x, c) // who looks in the middle of it sees the more
	if sent := c.x.Attempt(); !sent {
		c.sending = nil
		return
	}
	c.sending.again = c.again || was != nil
	m.sendings = append(m.sendings, c.sending)
}

// finish gives the caller the provider's answer.
func (m *machine) finish(c *caller, status int, headers [][2]string) {
	m.rest(c)
	var q struct {
		Stream    bool  `json:"stream"`
		MaxTokens int64 `json:"max_tokens"`
	}
	if err := json.Unmarshal(c.x.Body, &q); err != nil || strconv.Itoa(len(c.x.Body)) != c.x.Upstream("content-length") {
		m.t.Fatalf("what left is %s, of length %s: %v", c.x.Body, c.x.Upstream("content-length"), err)
	}
	if n := strings.Count(string(c.x.Body), "[weir]"); n > 1 {
		m.t.Fatalf("hints pile up: %s", c.x.Body)
	}
	body, kind := `{}`, "application/json"
	if llm := !strings.Contains(c.x.Upstream(":path"), "/q"); status == 200 && llm {
		output := int64(m.pick("tokens", int(q.MaxTokens)+1))
		body = fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":%d,"total_tokens":%d}}`, output, output+1)
		c.sending.tokens = output + 1
		if q.Stream {
			body, kind = "data: "+body+"\n\ndata: [DONE]\n\n", "text/event-stream"
		}
	}
	c.x.Respond(status, false, append(headers, [2]string{"content-type", kind})...)
	c.x.Chunk([]byte(body), true)
	c.sending.open, c.answered = false, true
	if m.pick("close", 2) == 0 {
		m.end(c)
	}
}

// fanOut reserves one, or asks what is left.
func (m *machine) fanOut() {
	user, tree := m.one("user", "u", "v"), m.one("tree", "s", "t")
	headers := [][2]string{{"x-tenant", "a"}, {"x-user", user}, {"x-request-tree", tree}}
	r := filtertest.Request{Method: "GET", Path: "/.weir/budget", Headers: headers}
	if m.pick("reserve", 3) > 0 {
		r = filtertest.Request{Path: "/.weir/reserve", Headers: headers, Body: fmt.Appendf(nil, `{"provider":"openai","model":"big","branches":%d,"input_tokens":60,"max_tokens":200,"tools":{"search":{"provider":"search","calls":%d}}}`, 1+m.pick("branches", 4), m.pick("calls", 3))}
	}
	w := m.worker()
	m.disturb(func() int { return w })
	x := m.p.Worker(w).Open(r)
	if x.Sent || x.Reply == nil {
		m.t.Fatalf("%s was sent", r.Path)
	}
	if id, ok := strings.CutPrefix(x.Reply.Body, `{"reservation":"`); ok {
		m.fanouts = append(m.fanouts, fanout{id[:32], user, tree})
	}
	x.Close()
}
