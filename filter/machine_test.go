// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
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
