// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
	"pgregory.net/rapid"
)

const agentPolicy = `{"apiVersion":"weir/v1","trust":["all"],
	"providers":{"openai":{"upstream":"http://openai.test"},"search":{"upstream":"http://search.test","dialect":"generic"},
		"mcp":{"upstream":"http://mcp.test","dialect":"generic"},"all":{"upstream":"http://all.test","dialect":"generic","prefix":"/"}},
	"limits":{"user":{"default":{"tpm":"40000","burst":"100%"}},"tree":{"default":{"calls":"40","ttl":"10m"}},"tool":{"search":{"rps":"6","burst":"100%"}}},
	"fanout":{"max":"32","ttl":"30s","per_tree":"2"}}`

func reserve(body string, headers ...[2]string) filtertest.Request {
	return filtertest.Request{Path: "/.weir/reserve", Headers: append([][2]string{{"x-tenant", "a"}, {"x-user", "u"}, {"x-request-tree", "t"}}, headers...), Body: []byte(body)}
}

// opened reserves eight branches of 500 tokens and a little, and gives the reservation's id.
func opened(t *testing.T, w *filtertest.Worker) string {
	t.Helper()
	x := w.Open(reserve(`{"provider":"openai","model":"gpt-4o","branches":8,"input_tokens":20,"max_tokens":500}`))
	if x.Sent || x.Reply == nil || x.Reply.Status != 200 {
		t.Fatalf("%+v", x.Reply)
	}
	id, _ := field(t, x.Reply.Body, "reservation").(string)
	if len(id) != 32 || field(t, x.Reply.Body, "tokens") != 8*520.0 || field(t, x.Reply.Body, "expires_in_ms") != 30000.0 {
		t.Fatalf("%s", x.Reply.Body)
	}
	return id
}

func branch(w *filtertest.Worker, id string, output int, headers ...[2]string) *filtertest.Exchange {
	r := request("/openai/v1/chat/completions", "a", fmt.Sprintf(`{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"hi"}]}`, output))
	r.Headers = append(append(r.Headers, [][2]string{{"x-user", "u"}, {"x-request-tree", "t"}, {"x-weir-reservation", id}}...), headers...)
	return w.Open(r)
}

func left(t *testing.T, w *filtertest.Worker, tier, counts string, headers ...[2]string) float64 {
	t.Helper()
	x := w.Open(filtertest.Request{Method: "GET", Path: "/.weir/budget", Headers: append([][2]string{{"x-tenant", "a"}, {"x-user", "u"}, {"x-request-tree", "t"}}, headers...)})
	if x.Sent || x.Reply == nil || x.Reply.Status != 200 {
		t.Fatalf("%+v", x.Reply)
	}
	list, _ := field(t, x.Reply.Body, "left").([]any)
	for _, e := range list {
		if m := e.(map[string]any); m["tier"] == tier && m["counts"] == counts {
			return m["left"].(float64)
		}
	}
	t.Fatalf("no %s of the %s in %s", counts, tier, x.Reply.Body)
	return 0
}

// Eight branches that were reserved go whatever workers they come to, the ninth is a call like any other; nobody else can take one;
// what none has taken comes back.
func TestReservation(t *testing.T) {
	both(t, 2, agentPolicy, func(t *testing.T, p *filtertest.Process) {
		id := opened(t, p.Worker(0))
		if n := left(t, p.Worker(1), "user", "tokens"); n != 40000-8*520 {
			t.Errorf("%v tokens are left", n)
		}
		if n := left(t, p.Worker(1), "tree", "calls"); n != 32 {
			t.Errorf("%v calls are left", n)
		}
		for i, other := range [][][2]string{
			{{"x-tenant", "b"}, {"x-user", "u"}, {"x-request-tree", "t"}}, {{"x-tenant", "a"}, {"x-user", "v"}, {"x-request-tree", "t"}}, {{"x-tenant", "a"}, {"x-user", "u"}, {"x-request-tree", "s"}},
		} {
			r := request("/openai/v1/chat/completions", "", `{"model":"gpt-4o","max_tokens":10,"messages":[]}`)
			r.Headers = append(other, [2]string{"x-weir-reservation", id})
			if x := p.Worker(i).Open(r); !x.Sent {
				t.Errorf("%v: %+v", other, x.Reply)
			} else {
				x.Answer(400, "{}")
			}
		}
		for _, odd := range []string{"x", id + "0", strings.Repeat("0", 32), strings.Repeat("g", 32)} {
			x := branch(p.Worker(0), odd, 100)
			if !x.Sent {
				t.Errorf("%q: %+v", odd, x.Reply)
			}
			x.Answer(400, "{}")
		}
		for _, again := range []string{"x-stainless-retry-count", "x-weir-retry"} {
			x := branch(p.Worker(0), id, 100, [2]string{again, "1"})
			if !x.Sent {
				t.Errorf("%s: %+v", again, x.Reply)
			}
			x.Answer(400, "{}")
		}
		if n := p.Metric("weir_branches_total.source.reservation"); n != 0 {
			t.Errorf("%d took a branch that is not theirs", n)
		}
		p.Sleep(time.Second)
		before := left(t, p.Worker(0), "user", "tokens")
		var open []*filtertest.Exchange
		for i := range 8 {
			x := branch(p.Worker(i), id, 500)
			if !x.Sent || x.Upstream("x-weir-reservation") != "" {
				t.Fatalf("branch %d: %+v %v", i, x.Reply, x.Headers)
			}
			open = append(open, x)
		}
		if after := left(t, p.Worker(0), "user", "tokens"); after < before || after > before+8*520 {
			t.Errorf("%v tokens are left after the branches, %v before", after, before)
		}
		ninth := branch(p.Worker(0), id, 500)
		if n := left(t, p.Worker(0), "user", "tokens"); !ninth.Sent || n > before-500+8*20 {
			t.Errorf("%v tokens are left after a ninth", n)
		}
		for _, x := range append(open, ninth) {
			x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
		}
		if a, b := p.Metric("weir_branches_total.source.reservation"), p.Metric("weir_branches_total.source.limits"); a != 8 || b != 10 {
			t.Errorf("%d branches, %d that were none", a, b)
		}
		id = opened(t, p.Worker(1))
		x := branch(p.Worker(0), id, 500)
		x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
		p.Sleep(31 * time.Second)
		if n := left(t, p.Worker(0), "tree", "calls"); n != 40-6-9-1 {
			t.Errorf("%v calls are left when the reservation has expired", n)
		}
		y := branch(p.Worker(0), id, 500)
		if n := left(t, p.Worker(0), "tree", "calls"); !y.Sent || n != 40-6-9-1-1 {
			t.Errorf("%v calls are left after one that names an expired one", n)
		}
		if n := p.Metric("weir_fanouts_total.decision.admit"); n != 2 {
			t.Errorf("%d fan-outs", n)
		}
	})
}

// A branch goes at once though others wait for the pool: it has its place already. Sent again it has none.
func TestReservationPassesTheQueue(t *testing.T) {
	policy := `{"apiVersion":"weir/v1","trust":["all"],"classes":{"all":{"on_limit":"queue","wait":"2m"}},
		"providers":{"openai":{"upstream":"http://openai.test","models":{"*":{"rpm":"10","burst":"100%"}}}}}`
	both(t, 2, policy, func(t *testing.T, p *filtertest.Process) {
		x := p.Worker(0).Open(reserve(`{"model":"gpt-4o","branches":3,"input_tokens":20,"max_tokens":100}`))
		id := field(t, x.Reply.Body, "reservation").(string)
		for range 7 {
			branch(p.Worker(0), "", 10)
		}
		waits, joins := branch(p.Worker(0), "", 10), branch(p.Worker(0), id, 10)
		again := branch(p.Worker(1), id, 10, [2]string{"x-stainless-retry-count", "1"})
		if waits.Sent || waits.Reply != nil || !joins.Sent || again.Sent {
			t.Errorf("one that waits: %v, a branch: %v, its retry: %v", waits.Sent, joins.Sent, again.Sent)
		}
	})
}

// What does not fit is refused with what would; so is what is asked for in a wrong way, by its field.
func TestReserveRefuses(t *testing.T) {
	both(t, 1, agentPolicy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		for _, row := range []struct {
			body, code, field string
			fits              float64
		}{
			{`{"provider":"openai","model":"m","branches":30,"input_tokens":1000,"max_tokens":0}`, "fanout_refused", "", 20}, // half of the user's
			{`{"provider":"openai","model":"m","branches":40,"input_tokens":1}`, "fanout_refused", "", 19},                   // the default output
			{`{"provider":"openai","model":"m","branches":33,"input_tokens":1,"max_tokens":1}`, "fanout_refused", "", 32},    // max
			{`{"provider":"openai","model":"m","branches":20,"input_tokens":1,"max_tokens":1,"tools":{"mcp":30}}`, "fanout_refused", "", 16},
			{`{"provider":"openai","model":"m","branches":8,"input_tokens":1,"max_tokens":1,"tools":{"search":8}}`, "fanout_refused", "", 3},
			{`{"provider":"openai","model":"m","branches":8,"input_tokens":1,"max_tokens":1,"tools":{"search":{"provider":"mcp","calls":16}}}`, "fanout_refused", "", 1},
			{`{"tools":{"search":7}}`, "fanout_refused", "", 3},
			{`{"branches":8}`, "bad_request", "model", 0}, {`{"branches":8,"provider":"x"}`, "bad_request", "provider", 0},
			{`{"branches":8,"provider":"openai","model":"m"}`, "bad_request", "input_tokens", 0},
			{`{"branches":-1}`, "bad_request", "branches", 0}, {`{"branches":"8"}`, "bad_request", "branches", 0}, {`{"branches":1e3}`, "bad_request", "branches", 0},
			{`{"max_token":8}`, "bad_request", "max_token", 0}, {`{"tools":[]}`, "bad_request", "tools", 0}, {`{"tools":{"x":1}}`, "bad_request", "tools", 0},
			{`{"tools":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}}`, "bad_request", "tools", 0}, {`{"tools":{"search":{"n":2}}}`, "bad_request", "tools", 0}, {`{"tools":{"":1}}`, "bad_request", "tools", 0}, {`{"branches":8}x`, "bad_request", "", 0},
			{`{"model":"m"}`, "bad_request", "branches", 0}, {`{}`, "bad_request", "branches", 0}, {`{"branches":8`, "bad_request", "", 0}, {`[]`, "bad_request", "", 0},
			{`{"user":"` + strings.Repeat("u", 17<<10) + `"}`, "body_too_large", "", 0},
		} {
			x := w.Open(reserve(row.body))
			if x.Sent || x.Reply == nil {
				t.Fatalf("%.80s: it was sent", row.body)
			}
			b := x.Reply.Body
			status := map[string]int{"fanout_refused": 429, "bad_request": 400, "body_too_large": 413}[row.code]
			if x.Reply.Status != status || field(t, b, "error.code") != row.code || row.field != "" && field(t, b, "error.field") != row.field || x.Reply.Headers.Get("x-weir-reason") != row.code {
				t.Errorf("%.80s: %d %s", row.body, x.Reply.Status, b)
			}
			if status == 429 && field(t, b, "fits") != row.fits {
				t.Errorf("%s: %s, want %v", row.body, b, row.fits)
			}
		}
		if n := left(t, w, "user", "tokens"); n != 40000 {
			t.Errorf("what was refused took something: %v", n)
		}
		for i := range 3 {
			x := w.Open(reserve(`{"tools":{"mcp":1}}`))
			if want := []int{200, 200, 429}[i]; x.Reply.Status != want {
				t.Errorf("fan-out %d of a tree: %d %s", i, x.Reply.Status, x.Reply.Body)
			}
		}
		if n := p.Metric("weir_fanouts_total.decision.deny"); n != 8 {
			t.Errorf("%d refused fan-outs", n)
		}
	})
}

// Tools are part of a fan-out: of those that the policy limits, and as calls of the tree.
func TestReserveTools(t *testing.T) {
	both(t, 2, agentPolicy, func(t *testing.T, p *filtertest.Process) {
		x := p.Worker(0).Open(reserve(`{"provider":"openai","model":"gpt-4o","branches":3,"input_tokens":20,"max_tokens":100,"tools":{"search":3}}`))
		if x.Reply.Status != 200 || field(t, x.Reply.Body, "calls") != 6.0 || field(t, x.Reply.Body, "tools.search") != 3.0 {
			t.Fatalf("%s", x.Reply.Body)
		}
		id := field(t, x.Reply.Body, "reservation").(string)
		search := func(w int, id string) *filtertest.Exchange {
			r := request("/search/q", "a", `{}`)
			r.Headers = append(r.Headers, [][2]string{{"x-user", "u"}, {"x-request-tree", "t"}, {"x-weir-reservation", id}}...)
			return p.Worker(w).Open(r)
		}
		for i := range 3 { // half of the tool is left to others
			if x := search(i, ""); !x.Sent {
				t.Errorf("search %d of no reservation: %+v", i, x.Reply)
			}
		}
		if x := search(0, ""); x.Reply == nil || x.Reply.Headers.Get("x-weir-tier") != "tool" {
			t.Errorf("a fourth search of no reservation: %+v", x.Reply)
		}
		for i := range 3 {
			if x := search(i, id); !x.Sent {
				t.Errorf("search %d: %+v", i, x.Reply)
			}
		}
		if x := search(1, id); x.Sent {
			t.Error("a fourth search was sent")
		}
		if x := branch(p.Worker(1), id, 100); !x.Sent {
			t.Errorf("%+v", x.Reply)
		}
		if n := p.Metric("weir_branches_total.source.reservation"); n != 4 {
			t.Errorf("%d branches", n)
		}
	})
}

// What is under /.weir never leaves, whatever the policy's mode, also where a provider has every path; and it is about nobody but
// the caller.
func TestEndpoints(t *testing.T) {
	off := strings.Replace(agentPolicy, `"trust"`, `"endpoints":false,"trust"`, 1)
	for _, row := range []struct {
		policy, method, path string
		status               int
		code                 string
	}{
		{agentPolicy, "GET", "/.weir/ready", 404, "not_found"}, {agentPolicy, "GET", "/.weir", 404, "not_found"}, {agentPolicy, "GET", "/.weir?x", 404, "not_found"},
		{agentPolicy, "GET", "/.weir/reserve?x=1", 405, "method_not_allowed"}, {agentPolicy, "POST", "/.weir/budget", 405, "method_not_allowed"},
		{agentPolicy, "POST", "/.weir/reserve", 400, "bad_request"}, {agentPolicy, "GET", "/.weir/budget?provider=x", 400, "bad_request"},
		{off, "POST", "/.weir/reserve", 404, "not_found"}, {off, "GET", "/.weir/budget", 404, "not_found"},
	} {
		for _, mode := range []string{"enforce", "shadow", "off"} {
			p := process(t, nil, 1, strings.Replace(row.policy, `"trust"`, `"mode":"`+mode+`","trust"`, 1))
			x := p.Worker(0).Open(filtertest.Request{Method: row.method, Path: row.path})
			if x.Sent || x.Reply.Status != row.status || field(t, x.Reply.Body, "error.code") != row.code || x.Reply.Headers.Get("x-weir-decision") != "deny" {
				t.Errorf("%s %s in mode %s: %+v", row.method, row.path, mode, x.Reply)
			}
			x = p.Worker(0).Open(filtertest.Request{Method: "GET", Path: "/.weirdo"})
			if !x.Sent {
				t.Errorf("/.weirdo in mode %s: %+v", mode, x.Reply)
			}
			if row.policy == off {
				continue
			}
			if x = p.Worker(0).Open(reserve(`{"provider":"openai","model":"m","branches":2,"input_tokens":1}`)); x.Reply == nil || x.Reply.Status != 200 {
				t.Errorf("in mode %s: %+v", mode, x.Reply)
			}
		}
	}
	p := process(t, nil, 1, agentPolicy)
	x := p.Worker(0).Open(filtertest.Request{Method: "GET", Path: "/.weir/budget", Headers: [][2]string{{"x-tenant", "a"}, {"x-tenant", "b"}}})
	if x.Sent || x.Reply.Status != 400 || field(t, x.Reply.Body, "error.code") != "bad_identity" {
		t.Errorf("two tenants: %+v", x.Reply)
	}
	opened(t, p.Worker(0))
	if n := left(t, p.Worker(0), "user", "tokens", [2]string{"x-nothing", ""}); n != 40000-8*520 {
		t.Errorf("%v", n)
	}
	x = p.Worker(0).Open(filtertest.Request{Method: "HEAD", Path: "/.weir/budget", Headers: [][2]string{{"x-tenant", "b"}, {"x-user", "u"}}})
	if x.Reply.Status != 200 || x.Reply.Body != "" {
		t.Errorf("HEAD: %+v", x.Reply)
	}
	p.Fail = func(call string) bool { return call == "random" }
	if x = p.Worker(0).Open(reserve(`{"tools":{"mcp":1}}`)); x.Sent || x.Reply.Status != 503 {
		t.Errorf("without randomness: %+v", x.Reply)
	}
}

// Whatever comes to whatever workers in whatever order: the branches of all fan-outs together never get more than was reserved,
// nothing is admitted beyond the tree's calls, and in the end only what was used is gone.
func TestReservationsOverWorkers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, err := filtertest.NewProcess(nil, 3)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Configure([]byte(agentPolicy)); err != nil {
			t.Fatal(err)
		}
		type fanout struct {
			id       string
			n, taken int
			until    int64
		}
		var fans []*fanout
		var open []*filtertest.Exchange
		calls, joined := 0, 0
		for range rapid.IntRange(1, 50).Draw(rt, "steps") {
			w := p.Worker(rapid.IntRange(0, 2).Draw(rt, "worker"))
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0:
				n := rapid.IntRange(1, 10).Draw(rt, "branches")
				x := w.Open(reserve(fmt.Sprintf(`{"provider":"openai","model":"gpt-4o","branches":%d,"input_tokens":10,"max_tokens":50}`, n)))
				if x.Reply.Status == 200 {
					fans = append(fans, &fanout{id: field(t, x.Reply.Body, "reservation").(string), n: n, until: p.Clock + int64(30*time.Second)})
				}
			case 1:
				p.Sleep(time.Duration(rapid.Int64Range(1, 10e9).Draw(rt, "dt")))
			case 2:
				if len(open) > 0 {
					open[0].Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
					open = open[1:]
				}
			default:
				id := "none"
				var f *fanout
				if len(fans) > 0 {
					f = fans[rapid.IntRange(0, len(fans)-1).Draw(rt, "fan-out")]
					id = f.id
				}
				x := branch(w, id, 50)
				if x.Sent {
					calls++
					open = append(open, x)
				}
				if f != nil && f.taken < f.n && p.Clock < f.until {
					if !x.Sent {
						rt.Fatalf("branch %d of %d was refused: %s", f.taken+1, f.n, x.Reply.Body)
					}
					f.taken++
					joined++
				}
			}
			held := 0
			for _, f := range fans {
				if p.Clock < f.until {
					held += f.n - f.taken
				}
			}
			if n := p.Clock; calls+held > 40 {
				rt.Fatalf("%d calls and %d held at %d, the tree has 40", calls, held, n)
			}
		}
		for _, x := range open {
			x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
		}
		p.Sleep(31 * time.Second)
		if p.Clock > int64(time.Hour+9*time.Minute) {
			return // the tree's time is over
		}
		if n := left(t, p.Worker(0), "tree", "calls"); int(n) != 40-calls {
			rt.Fatalf("%v calls are left of 40, %d were sent", n, calls)
		}
		if n := p.Metric("weir_branches_total.source.reservation"); n != joined {
			rt.Fatalf("%d took their part, %d should", n, joined)
		}
	})
}
