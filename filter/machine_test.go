// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
	"pgregory.net/rapid"
)

// A machine is an Envoy with callers and providers who do anything at all, at any moment.
type machine struct {
	t        *rapid.T
	p        *filtertest.Process
	exact    bool   // nobody leaves a call whose use only weir can guess
	panics   bool   // host calls fail now and then
	mode     string // of all its policies: enforce, shadow, or one that lets pass what fails
	callers  []*caller
	sendings []*sending
	fanouts  []fanout
	busy     func() int // which worker is, while another one does something
	panicked bool
}

// A fanout is an open reservation, or one that was.
type fanout struct{ id, user, tree string }

// A caller is a request, and what its caller knows of it.
type caller struct {
	worker           int
	x                *filtertest.Exchange
	user, tree       string
	again            bool
	chunks           [][]byte // of its body that are to come
	opened           int64
	left             bool // before it was sent
	answered, closed bool
	sending          *sending // the last one
}

const machineWorkers = 3

const (
	enforces = `"mode":"enforce"`
	watches  = `"mode":"shadow"`
	failOpen = `"on_error":"allow"`
)

func newMachine(t *rapid.T, panics bool) *machine {
	m := &machine{t: t, panics: panics, exact: rapid.Bool().Draw(t, "exact"), mode: enforces}
	if m.pick("mode", 4) == 0 {
		m.mode = watches
		if panics {
			m.mode = failOpen
		}
	}
	var err error
	if m.p, err = filtertest.NewProcess(nil, machineWorkers); err != nil {
		t.Fatal(err)
	}
	for i := range machineWorkers {
		m.configure(m.p.Worker(i), machineClasses)
	}
	if err := m.p.CountAttempts(); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) configure(w *filtertest.Worker, classes string) {
	if err := w.Configure([]byte("{" + m.mode + machineHead + classes)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) pick(what string, n int) int { return rapid.IntRange(0, n-1).Draw(m.t, what) }

func (m *machine) one(what string, of ...string) string { return of[m.pick(what, len(of))] }

// worker gives one that is not busy.
func (m *machine) worker() int {
	if m.busy != nil {
		return (m.busy() + 1 + m.pick("other worker", machineWorkers-1)) % machineWorkers
	}
	return m.pick("worker", machineWorkers)
}

func (c *caller) which() int { return c.worker }

// step does one thing.
func (m *machine) step() {
	switch what := m.pick("what", 20); {
	case what < 8:
		m.open()
	case what < 13:
		m.answer()
	case what < 14:
		m.leave()
	case what < 15:
		m.fanOut()
	case what < 16:
		m.body()
	case what < 17 && m.busy == nil:
		m.configure(m.p.Worker(m.worker()), m.one("policy", machineClasses, machineOther))
	case m.busy == nil:
		m.sleep(time.Duration(1+m.pick("ticks", 20)) * 20 * time.Millisecond)
	}
	m.look()
}

// disturb has something happen within what comes next: another worker does something between two accesses to shared data, or a host
// call fails.
func (m *machine) disturb(busy func() int) {
	if m.busy != nil {
		return
	}
	m.p.Fail, m.p.Store.Before = nil, nil
	left := m.pick("disturbed after", 60)
	if m.panics {
		m.p.Fail = func(call string) bool {
			if call == "reply" || call == "request_headers" { // then nobody can be answered, and of what passes nothing is known
				return false
			}
			left--
			m.panicked = m.panicked || left == 0
			return left == 0
		}
		return
	}
	m.p.Store.Before = func(string, string) bool {
		if left--; left == 0 {
			m.busy = busy
			m.step()
			m.busy = nil
		}
		return true
	}
}

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

// sleep moves the clock.
func (m *machine) sleep(d time.Duration) {
	for ; d > 0; d -= 20 * time.Millisecond {
		m.disturb(func() int { return m.p.Ticking })
		m.p.Sleep(20 * time.Millisecond)
		m.look()
	}
}

// look sees what has become of all that is under way.
func (m *machine) look() {
	if m.busy != nil {
		return
	}
	m.p.Fail, m.p.Store.Before = nil, nil
	for _, c := range m.callers {
		switch {
		case c.closed && c.left && c.x.Sent:
			m.t.Fatalf("who had gone was sent: %+v", c.x)
		case c.closed:
		case m.mode == watches && !c.x.Sent && len(c.chunks) == 0:
			m.t.Fatalf("a policy that only watches does not let it pass: %+v", c.x)
		case c.x.Sent && c.x.Attempts == 0:
			m.attempt(c)
		case c.x.Sent == (c.x.Reply != nil) && len(c.chunks) == 0 && c.x.Attempts == 0 && m.p.Clock-c.opened > int64(longestWait+100*time.Millisecond):
			m.t.Fatalf("neither sent nor answered in time, or both: %+v", c.x)
		}
	}
	if wrong := twin(m.sendings); m.mode == enforces && wrong != "" {
		m.t.Fatal(wrong)
	}
}

// close ends everything, and nothing is left of it.
func (m *machine) close() {
	m.p.Fail, m.p.Store.Before = nil, nil
	for _, c := range m.callers {
		switch {
		case c.closed:
		case c.sending != nil && c.sending.open:
			m.finish(c, 400, nil)
			fallthrough
		default:
			m.end(c)
		}
	}
	m.p.Sleep(2100 * time.Millisecond) // fan-outs have expired
	for i := range machineWorkers {
		if inFlight, waiting, places, tickets := m.p.Worker(i).VM().Held(); inFlight+waiting+places+tickets != 0 {
			m.t.Fatalf("worker %d holds %d in flight, %d that wait, %d places, %d tickets", i, inFlight, waiting, places, tickets)
		}
	}
	if n := m.p.Metric("weir_panics_total"); n > 0 && !m.panicked {
		m.t.Fatalf("%d panics: %s", n, strings.Join(m.p.Logs, "\n"))
	}
	if m.exact && !m.panics {
		m.tokens()
	}
}

// tokens finds a token that was not given back, or given back twice.
func (m *machine) tokens() {
	m.p.Sleep(15 * time.Second) // a bucket gives back no more than it surely has; it has refilled by then, and the window has not moved on
	used := int64(0)
	for _, s := range m.sendings {
		if s.tokens > 0 {
			used += s.tokens
		}
	}
	x := m.p.Worker(0).Open(filtertest.Request{Method: "GET", Path: "/.weir/budget", Headers: [][2]string{{"x-tenant", "a"}}})
	var budget struct {
		Left []struct {
			Tier, Counts string
			Left         int64
		}
	}
	if err := json.Unmarshal([]byte(x.Reply.Body), &budget); err != nil {
		m.t.Fatal(err)
	}
	for _, l := range budget.Left {
		if l.Tier == "tenant" && l.Counts == "tokens" && l.Left != 9000-used && m.p.Clock-int64(time.Hour) < int64(time.Minute) {
			m.t.Fatalf("%d tokens are left of 9000, of which %d were used", l.Left, used)
		}
	}
}

func runMachine(t *testing.T, panics bool) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t, panics)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			m.step()
		}
		m.close()
	})
}

// Whatever callers, providers, workers and policies do at once: no limit is exceeded, each request is sent or answered once and in
// time, nothing is held or charged when all is over, and nothing panics.
func TestMachine(t *testing.T) { runMachine(t, false) }

// The same while host calls fail.
func TestMachineThatPanics(t *testing.T) { runMachine(t, true) }
