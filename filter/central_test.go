// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/central"
)

// centralPolicy has a central limit of 100,000 tokens for each tenant, of which this Envoy's floor is 500; users are held here.
const centralPolicy = `{"apiVersion":"weir/v1","trust":["all"],"fleet":{"shares":true,"scope":"node","floor":"10%","max_envoys":"20"},
	"providers":{"openai":{"upstream":"http://openai.test","models":{"gpt-4o":{"rps":"2","scope":"central"},"gpt-4o-mini":{"rps":"1000"}}},
		"tool":{"upstream":"http://tool.test","dialect":"generic"}},
	"limits":{"tenant":{"default":{"tpm":"100000","burst":"100%","scope":"central"}},"user":{"default":{"tpm":"10000","burst":"100%"}}},
	"degrade":{"gpt-4o":{"model":"gpt-4o-mini"}},
	"classes":{"patient":{"priority":3,"on_limit":"queue","wait":"20s"},"smaller":{"priority":2,"on_limit":"degrade"},"plain":{"priority":1}}}`

// A controlPlane holds what it is asked for, as the real one does: by id, once. A tenant may have 100,000 tokens in all.
type controlPlane struct {
	p       *filtertest.Process
	left    int64
	refuse  policy.Refusal // if its reason is not none: every take is refused with it
	takes   map[central.ID]*central.Take
	settled map[central.ID]policy.Cost
	asked   int
	failing map[string]int // how often a path answers 503
	posts   map[string]int
}

func newControlPlane(p *filtertest.Process) *controlPlane {
	c := &controlPlane{
		p: p, left: 100_000, takes: map[central.ID]*central.Take{}, settled: map[central.ID]policy.Cost{}, failing: map[string]int{}, posts: map[string]int{},
	}
	p.Node, p.Control = "egress-1", c.answer
	return c
}

func (c *controlPlane) answer(path string, body []byte) (int, []byte) {
	c.posts[path]++
	if c.failing[path] > 0 {
		c.failing[path]--
		return 503, nil
	}
	switch path {
	case central.TakePath:
		var m central.Take
		if m.Decode(body) != nil || m.Node != "egress-1" {
			return 400, nil
		}
		return c.take(&m)
	case central.SettlePath:
		var m central.Settles
		if m.Decode(body) != nil || m.Node != "egress-1" {
			return 400, nil
		}
		for _, s := range m.Calls {
			if _, done := c.settled[s.ID]; !done {
				c.settled[s.ID] = s.Cost
				if t := c.takes[s.ID]; t != nil {
					c.left += t.Cost.In(policy.Tokens) - s.Cost.In(policy.Tokens)
				}
			}
		}
		return 204, nil
	}
	return 204, nil
}

func (c *controlPlane) take(m *central.Take) (int, []byte) {
	c.asked++
	if _, gone := c.settled[m.ID]; gone {
		return 409, nil
	}
	var a central.Answer
	if c.takes[m.ID] == nil {
		need := m.Cost.In(policy.Tokens)
		if a.Refusal = c.refuse; a.Refusal.Reason == policy.None && need > c.left {
			a.Refusal = policy.Refusal{
				Reason: policy.LimitExceeded, Tier: policy.TierTenant, Dimension: policy.TPM, Limit: 100_000, Need: need, Remaining: c.left,
				Window: time.Minute, Wait: 3 * time.Second,
			}
		}
		if a.Refusal.Reason != policy.None {
			a.Verdict = policy.Deny
		} else {
			c.left -= need
			c.takes[m.ID] = m
		}
	}
	return 200, a.Append(nil)
}

// open is how many takes have not been settled.
func (c *controlPlane) open() int { return len(c.takes) - len(c.settledTakes()) }

func (c *controlPlane) settledTakes() (list []central.ID) {
	for id := range c.takes {
		if _, ok := c.settled[id]; ok {
			list = append(list, id)
		}
	}
	return list
}

const aTick = 20 * time.Millisecond

// withUser is a call of a user of a tenant and a class.
func withUser(tenant, user, class string, output int) filtertest.Request {
	r := chat(tenant, "hi", output-input)
	r.Headers = append(r.Headers, [2]string{"x-user", user}, [2]string{"x-priority", class})
	return r
}

// withMini is the same for a model whose limits are held here.
func withMini(tenant, user, class string, output int) filtertest.Request {
	r := withUser(tenant, user, class, output)
	r.Body = []byte(strings.Replace(string(r.Body), `"gpt-4o"`, `"gpt-4o-mini"`, 1))
	return r
}

// A call is sent when the control plane admits it, and settled there at what it cost; nothing is asked of the Envoy's own limits
// that is central, and the other way round.
func TestCentralAdmits(t *testing.T) {
	both(t, 1, centralPolicy, func(t *testing.T, p *filtertest.Process) {
		c := newControlPlane(p)
		x := p.Worker(0).Open(withUser("a", "u", "plain", 1000))
		if !held(x) {
			t.Fatalf("nobody has been asked yet: sent %v, %+v", x.Sent, x.Reply)
		}
		p.Sleep(aTick)
		if !x.Sent || c.left != 99_000 || x.Upstream("x-tenant") != "" || !strings.Contains(string(x.Body), `"hi"`) {
			t.Fatalf("sent %v, %+v, left %d, %s", x.Sent, x.Reply, c.left, x.Body)
		}
		for _, m := range c.takes {
			if m.Tiers != central.Tiers(0).With(policy.TierTenant).With(policy.TierProvider) || m.Caller.Tenant != "a" || m.Provider != "openai" || m.Model != "gpt-4o" {
				t.Errorf("asked for %+v", m)
			}
		}
		x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
		p.Sleep(2 * aTick)
		if c.left != 99_990 || c.open() != 0 {
			t.Errorf("left %d, open %d", c.left, c.open())
		}
		if n := p.Metric("weir_central_takes_total.result.admitted"); n != 1 || p.Metric("weir_central_settles_total.result.taken") != 1 {
			t.Errorf("counted %d", n)
		}
	})
}

// What the control plane refuses is refused as if the limit were here, and everything that is here is given back.
func TestCentralRefuses(t *testing.T) {
	both(t, 1, centralPolicy, func(t *testing.T, p *filtertest.Process) {
		c := newControlPlane(p)
		c.left = 500
		for range 3 { // the user's limit would have room for one and a half of them
			x := p.Worker(0).Open(withUser("a", "u", "plain", 6000))
			p.Sleep(aTick)
			if x.Sent || x.Reply == nil || x.Reply.Status != 429 {
				t.Fatalf("sent %v, %+v", x.Sent, x.Reply)
			}
			h := x.Reply.Headers
			if h.Get("x-weir-tier") != "tenant" || h.Get("x-weir-dimension") != "tpm" || h.Get("x-weir-reason") != "limit_exceeded" ||
				h.Get("x-ratelimit-limit-tokens") != "100000" || h.Get("retry-after") == "" {
				t.Errorf("headers %v", h)
			}
			x.Close()
		}
		if c.left = 6000; len(c.settled) != 0 {
			t.Error("what was refused is settled")
		}
		x := p.Worker(0).Open(withUser("a", "u", "plain", 6000))
		p.Sleep(aTick)
		y := p.Worker(0).Open(withUser("a", "u", "plain", 6000))
		if !x.Sent || y.Reply == nil || y.Reply.Headers.Get("x-weir-tier") != "user" || c.asked != 4 {
			t.Errorf("sent %v; what is refused here is not asked for: %+v, %d", x.Sent, y.Reply, c.asked)
		}
	})
}

// Without an answer the floor holds, 500 tokens a minute, and then the call is refused for that; nobody is asked for a second, and the
// control plane's return is found by itself.
func TestCentralFloor(t *testing.T) {
	both(t, 1, centralPolicy, func(t *testing.T, p *filtertest.Process) {
		c := newControlPlane(p)
		c.failing[central.TakePath] = 1000
		x := p.Worker(0).Open(withMini("a", "u", "plain", 100)) // a burst of the floor
		p.Sleep(3 * aTick)
		if !x.Sent {
			t.Fatalf("the floor has room: %+v", x.Reply)
		}
		posts := c.posts[central.TakePath]
		y := p.Worker(0).Open(withMini("a", "u", "plain", 1000))
		if y.Reply == nil || y.Reply.Headers.Get("x-weir-reason") != "no_share" || y.Reply.Headers.Get("x-weir-tier") != "tenant" ||
			y.Reply.Headers.Get("retry-after") != "1" || c.posts[central.TakePath] != posts || posts != 2 {
			t.Fatalf("%+v, asked %d times", y.Reply, c.posts[central.TakePath])
		}
		sum := 100
		for range 61 * 5 {
			p.Sleep(200 * time.Millisecond)
			if z := p.Worker(0).Open(withMini("b", "u", "plain", 100)); true {
				p.Sleep(3 * aTick)
				if z.Sent {
					sum += 100
				} else if z.Reply == nil {
					t.Fatal("it hangs")
				}
			}
		}
		if sum < 600 || sum > 1100+100 {
			t.Errorf("the floor of 500 a minute let %d through in 80 s", sum)
		}
		c.failing[central.TakePath] = 0
		p.Sleep(3 * time.Second)
		z := p.Worker(0).Open(withMini("c", "u", "plain", 5000))
		p.Sleep(2 * aTick)
		if !z.Sent {
			t.Errorf("it is back: %+v", z.Reply)
		}
		if logs := strings.Join(p.Logs, "\n"); strings.Count(logs, "does not answer for central limits") != 1 || !strings.Contains(logs, "again") {
			t.Errorf("logs: %s", logs)
		}
		x.Close()
		p.Sleep(10 * time.Second)
		if c.open() != 1 {
			t.Errorf("%d takes are open, want that of the last call", c.open())
		}
	})
}

// An answer that does not come in time is none: what it may have taken is settled as nothing, and a caller that goes meanwhile costs
// nothing either.
func TestCentralTooLate(t *testing.T) {
	for name, late := range map[string][2]time.Duration{"the answer": {0, 5 * time.Second}, "the question": {5 * time.Second, 0}} {
		t.Run(name, func(t *testing.T) {
			both(t, 1, centralPolicy, func(t *testing.T, p *filtertest.Process) {
				c := newControlPlane(p)
				p.Late = func(path string) (time.Duration, time.Duration) {
					if path == central.TakePath {
						return late[0], late[1]
					}
					return 0, 0
				}
				x, gone := p.Worker(0).Open(withUser("a", "u", "plain", 1000)), p.Worker(0).Open(withUser("a", "u", "plain", 1000))
				p.Sleep(time.Second)
				gone.Close()
				p.Sleep(900 * time.Millisecond)
				if !held(x) {
					t.Fatal("too early")
				}
				p.Sleep(200 * time.Millisecond)
				if x.Reply == nil || x.Reply.Headers.Get("x-weir-reason") != "no_share" {
					t.Fatalf("sent %v, %+v", x.Sent, x.Reply)
				}
				p.Sleep(10 * time.Second)
				if c.open() != 0 || c.left != 100_000 || gone.Sent {
					t.Errorf("open %d, left %d", c.open(), c.left)
				}
				p.Late = nil
				y := p.Worker(0).Open(withUser("a", "u", "plain", 9900))
				p.Sleep(aTick)
				if !y.Sent {
					t.Errorf("the user's limit was not given back: %+v", y.Reply)
				}
			})
		})
	}
}

// A settlement that is lost is sent again, and counts once; those of a tick go together.
func TestCentralSettles(t *testing.T) {
	both(t, 1, centralPolicy, func(t *testing.T, p *filtertest.Process) {
		c := newControlPlane(p)
		c.failing[central.SettlePath] = 2
		var calls []*filtertest.Exchange
		for i := range 40 {
			calls = append(calls, p.Worker(0).Open(withUser("a", fmt.Sprint("u", i), "plain", 1000)))
		}
		p.Sleep(aTick)
		for _, x := range calls {
			x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
		}
		p.Sleep(2 * aTick)
		if n := c.posts[central.SettlePath]; n != 2 {
			t.Errorf("%d posts for 40 settlements", n)
		}
		p.Sleep(2 * time.Second)
		if c.open() != 0 || c.left != 100_000-40*10 {
			t.Errorf("open %d, left %d", c.open(), c.left)
		}
	})
}

// Who waits is asked for again when the time is over that was told, and no earlier; so is who comes meanwhile.
func TestCentralWaits(t *testing.T) {
	both(t, 1, centralPolicy, func(t *testing.T, p *filtertest.Process) {
		c := newControlPlane(p)
		c.refuse = policy.Refusal{
			Reason: policy.LimitExceeded, Tier: policy.TierProvider, Dimension: policy.RPS, Limit: 2, Need: 1, Window: time.Second, Wait: time.Second,
		}
		var calls []*filtertest.Exchange
		for i := range 50 {
			calls = append(calls, p.Worker(0).Open(withUser("a", fmt.Sprint("u", i), "patient", 100)))
			p.Sleep(aTick)
		}
		p.Sleep(9 * time.Second)
		for _, x := range calls {
			if !held(x) {
				t.Fatalf("sent %v, %+v", x.Sent, x.Reply)
			}
		}
		if c.asked < 8 || c.asked > 10*8+2 {
			t.Errorf("asked %d times for 50 that wait 10 s, each told to wait a second", c.asked)
		}
		gone := calls[0]
		gone.Close()
		c.refuse = policy.Refusal{}
		p.Sleep(2 * time.Second)
		for _, x := range calls[1:] {
			if !x.Sent {
				t.Fatalf("it still waits: %+v", x.Reply)
			}
		}
		if gone.Sent || c.open() != 49 {
			t.Errorf("open %d", c.open())
		}
	})
}

// Time is over for who waits, also while it is asked for.
func TestCentralWaitsTooLong(t *testing.T) {
	both(t, 1, centralPolicy, func(t *testing.T, p *filtertest.Process) {
		c := newControlPlane(p)
		c.left = 50
		x := p.Worker(0).Open(withUser("a", "u", "patient", 100))
		p.Sleep(19900 * time.Millisecond)
		if !held(x) {
			t.Fatalf("sent %v, %+v", x.Sent, x.Reply)
		}
		p.Late = func(string) (time.Duration, time.Duration) { return time.Second, 0 }
		p.Sleep(time.Second)
		if x.Reply == nil || x.Reply.Headers.Get("x-weir-reason") != "queue_timeout" || x.Reply.Headers.Get("x-weir-tier") != "tenant" {
			t.Errorf("%+v", x.Reply)
		}
		c.left = 100_000
		p.Sleep(5 * time.Second)
		if c.open() != 0 {
			t.Error("a take is open for nobody")
		}
	})
}

// What goes to a smaller model is asked for as that; if it may not go there either, it is refused for what it was at first.
func TestCentralDegrades(t *testing.T) {
	both(t, 1, centralPolicy, func(t *testing.T, p *filtertest.Process) {
		c := newControlPlane(p)
		provider := policy.Refusal{
			Reason: policy.LimitExceeded, Tier: policy.TierProvider, Dimension: policy.RPS, Limit: 2, Need: 1, Window: time.Second, Wait: time.Second,
		}
		p.Control = func(path string, body []byte) (int, []byte) {
			var m central.Take
			if c.refuse = (policy.Refusal{}); path == central.TakePath && m.Decode(body) == nil && m.Tiers.Has(policy.TierProvider) {
				c.refuse = provider
			}
			return c.answer(path, body)
		}
		x := p.Worker(0).Open(withUser("a", "u", "smaller", 1000))
		p.Sleep(2 * aTick)
		if !x.Sent || !strings.Contains(string(x.Body), `"gpt-4o-mini"`) || c.asked != 2 || c.open() != 1 {
			t.Fatalf("sent %v %s, %+v, asked %d", x.Sent, x.Body, x.Reply, c.asked)
		}
		x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
		c.left = 10
		y := p.Worker(0).Open(withUser("a", "u", "smaller", 1000))
		p.Sleep(2 * aTick)
		if y.Reply == nil || y.Reply.Headers.Get("x-weir-tier") != "provider" || y.Reply.Headers.Get("x-weir-decision") != "deny" {
			t.Errorf("sent %v, %+v", y.Sent, y.Reply)
		}
		p.Sleep(time.Second)
		if c.open() != 0 {
			t.Errorf("%d are open", c.open())
		}
	})
}

// Each attempt of Envoy's is asked for, and the one before settled.
func TestCentralAttempts(t *testing.T) {
	both(t, 1, centralPolicy, func(t *testing.T, p *filtertest.Process) {
		if err := p.CountAttempts(); err != nil {
			t.Fatal(err)
		}
		c := newControlPlane(p)
		x := p.Worker(0).Open(withUser("a", "u", "plain", 1000))
		p.Sleep(aTick)
		if !x.Attempt() || !x.Fails(503) {
			t.Fatal("the first attempt is as ever")
		}
		if x.Sent = false; x.Attempt() {
			t.Fatal("the second left before anybody was asked")
		}
		p.Sleep(2 * aTick)
		if !x.Sent || c.asked != 2 || c.open() != 1 {
			t.Fatalf("sent %v, %+v, asked %d, open %d", x.Sent, x.Reply, c.asked, c.open())
		}
		x.Fails(503)
		p.Late = func(string) (time.Duration, time.Duration) { return 0, time.Hour }
		x.Attempt()
		p.Sleep(time.Second)
		p.Late = nil
		if x.Attempt(); held(x) {
			t.Fatal("the fourth does not ask")
		}
		p.Sleep(2 * time.Second)
		if c.asked != 4 || c.open() != 1 {
			t.Errorf("asked %d, open %d: the third has gone", c.asked, c.open())
		}
		x.Fails(503)
		c.left = 10
		if x.Attempt(); x.Reply != nil {
			t.Fatal("refused too early")
		}
		p.Sleep(aTick)
		if reasonOf(x) != "limit_exceeded" {
			t.Errorf("%+v", x.Reply)
		}
		x.Close()
		p.Sleep(time.Second)
		if c.open() != 0 {
			t.Errorf("%d are open", c.open())
		}
		kept := int64(0)
		for _, cost := range c.settled {
			kept += cost.Requests
		}
		if kept != 3 {
			t.Errorf("%d requests were kept of three that were sent", kept)
		}
	})
}

// A limit that only watches is asked for, and refuses nothing; what is not metered is asked for with its first byte held.
func TestCentralShadowAndTools(t *testing.T) {
	both(t, 1, strings.Replace(centralPolicy, `"fleet"`, `"mode":"shadow","fleet"`, 1), func(t *testing.T, p *filtertest.Process) {
		c := newControlPlane(p)
		c.failing[central.TakePath] = 1
		x := p.Worker(0).Open(withUser("a", "u", "plain", 50_000))
		r := request("/tool/x", "a", "some text")
		y := p.Worker(0).Open(r)
		if !held(y) {
			t.Error("nobody was asked")
		}
		p.Sleep(2 * aTick)
		if !x.Sent || !y.Sent || string(y.Body) != "some text" {
			t.Errorf("sent %v, %v %q", x.Sent, y.Sent, y.Body)
		}
	})
}

// A panic while an answer is taken ends the call as one in its own callbacks does, and nothing stays taken.
func TestCentralPanic(t *testing.T) {
	both(t, 1, centralPolicy, func(t *testing.T, p *filtertest.Process) {
		c := newControlPlane(p)
		c.refuse = policy.Refusal{Reason: policy.LimitExceeded, Tier: policy.TierTenant, Dimension: policy.TPM, Limit: 1, Need: 1, Wait: time.Second}
		x := p.Worker(0).Open(withUser("a", "u", "smaller", 6000))
		if p.Worker(0).VM() == nil {
			return // only the filter's Go code can be made to panic
		}
		p.Fail = func(call string) bool { return call == "request_body" }
		p.Sleep(aTick)
		p.Fail = nil
		if x.Reply == nil || x.Reply.Status != 503 {
			t.Fatalf("sent %v, %+v", x.Sent, x.Reply)
		}
		if c.refuse = (policy.Refusal{}); p.Metric("weir_panics_total") != 1 {
			t.Error("not counted")
		}
		y := p.Worker(0).Open(withMini("a", "u", "plain", 9000))
		p.Sleep(aTick)
		if clear(p.Metrics); !y.Sent || c.open() != 1 {
			t.Errorf("the user's limit was not given back: %+v", y.Reply)
		}
	})
}
