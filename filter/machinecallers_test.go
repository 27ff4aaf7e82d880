// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/filter/filtertest"
)

// open sends a request, or a part of it.
func (m *machine) open() {
	c := &caller{user: m.one("user", "u", "v"), tree: m.one("tree", "", "s", "t"), opened: m.p.Clock, again: m.pick("again", 8) == 0}
	var reserved fanout
	if len(m.fanouts) > 0 && m.pick("branch", 2) == 0 {
		reserved = m.fanouts[m.pick("reservation", len(m.fanouts))]
		c.user, c.tree = reserved.user, reserved.tree
	}
	headers := [][2]string{{"x-tenant", "a"}, {"x-user", c.user}, {"x-request-tree", c.tree}, {"x-priority", m.one("class", "critical", "normal", "spilling", "batch")}}
	if reserved.id != "" {
		headers = append(headers, [2]string{"x-weir-reservation", reserved.id})
	}
	if c.again {
		headers = append(headers, [2]string{"x-stainless-retry-count", "1"})
	}
	for _, h := range [][2]string{{"x-weir-explain", "1"}, {"x-weir-deadline", "500ms"}} {
		if m.pick(h[0], 4) == 0 {
			headers = append(headers, h)
		}
	}
	path := m.one("path", "/openai/v1/chat/completions", "/openai/v1/chat/completions", "/openai/v1/chat/completions", "/azure/v1/chat/completions", "/free/v1/chat/completions", "/search/q")
	hint := m.one("hint", "", `,{"role":"system","content":"[weir] Old."}`)
	more := ""
	if m.pick("long", 8) == 0 { // more than is read
		more = `,"user":"` + strings.Repeat("x", 1100) + `"`
	}
	text := fmt.Sprintf(`{"model":%q,"stream":%v,"max_tokens":%d,"messages":[{"role":"user","content":"hi"}%s]%s}`, m.one("model", "big", "big", "small"), m.pick("stream", 2) == 0, m.pick("output", 500)+1, hint, more)
	cut := 1 + m.pick("cut", len(text)-1)
	c.chunks = [][]byte{[]byte(text[:cut]), []byte(text[cut:])}
	r := filtertest.Request{Path: path, Headers: append(headers, [2]string{"content-length", strconv.Itoa(len(text))}), Chunks: c.chunks}
	c.worker = m.worker()
	m.disturb(c.which)
	c.x = m.p.Worker(c.worker).Start(r)
	m.callers = append(m.callers, c)
	if m.pick("whole", 8) > 0 {
		m.rest(c)
	}
}

// rest sends the rest of a body.
func (m *machine) rest(c *caller) {
	for i, chunk := range c.chunks {
		if c.chunks = c.chunks[:0]; !c.closed {
			c.x.SendBody(chunk, i == 1)
		}
	}
	c.opened = m.p.Clock
}

// those gives one of the callers of some kind; nil if there is none.
func (m *machine) those(kind func(*caller) bool) *caller {
	var of []*caller
	for _, c := range m.callers {
		if !c.closed && kind(c) && (m.busy == nil || m.busy() != c.worker) {
			of = append(of, c)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return of[m.pick("which", len(of))]
}

func (m *machine) body() {
	if c := m.those(func(c *caller) bool { return len(c.chunks) > 0 }); c != nil {
		m.disturb(c.which)
		m.rest(c)
	}
}

// leave has a caller go.
func (m *machine) leave() {
	c := m.those(func(c *caller) bool { return !m.exact || !c.x.Sent || c.x.Reply != nil })
	if c != nil {
		m.disturb(c.which)
		m.end(c)
	}
}

func (m *machine) end(c *caller) {
	c.closed, c.left = true, !c.x.Sent
	if c.sending != nil {
		c.sending.open = false
	}
	c.x.Close()
}
