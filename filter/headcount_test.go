// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

const toldPolicy = `{"apiVersion":"weir/v1","trust":["all"],"fleet":{"reports":true},"providers":{"openai":{"upstream":"http://openai.test"}},
	"limits":{"tenant":{"default":{"rpm":"6","burst":"100%"},"one":{"in_flight":"1"},"shy":{"rpm":"1","burst":"100%","mode":"shadow"},"small":{"tpm":"100"}}},
	"classes":{"patient":{"priority":2,"on_limit":"queue","wait":"2s"},"interactive":{"priority":1}}}`

// A refused is what a caller was told.
type refused struct {
	tenant, reason, dimension, class string
	limit                            int64
	shadow                           bool
}

// A hearer is a control plane that adds up what it is told, and loses some of it, which comes again.
type hearer struct {
	t       *testing.T
	h       policy.Hasher
	rng     *rand.Rand
	loss    float64
	tenants map[policy.Key]string
	denied  map[refused]int64
	waited  map[string]int64
	now     map[string]int64
	used    map[string]int64 // by tenant and dimension
	asks    int
}

func newHearer(t *testing.T, seed uint64, text string, tenants ...string) *hearer {
	spec, err := policy.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	h := &hearer{
		t: t, h: p.Hasher, rng: rand.New(rand.NewPCG(seed, 9)), tenants: map[policy.Key]string{},
		denied: map[refused]int64{}, waited: map[string]int64{}, now: map[string]int64{}, used: map[string]int64{},
	}
	for _, name := range tenants {
		h.tenants[p.Hasher.Key(policy.TierTenant, name)] = name
	}
	return h
}

func (h *hearer) hear(_ string, body []byte) (int, []byte) {
	if h.rng.Float64() < h.loss {
		return 0, nil
	}
	m, err := fleet.DecodeFromNode(body)
	if err != nil {
		h.t.Fatal(err)
	}
	h.asks += len(m.Asks) + len(m.Draws)
	for _, d := range m.Denials {
		if d.Key != d.Tenant || d.Key != 0 && d.Tier != policy.TierTenant {
			h.t.Errorf("%+v", d)
		}
		h.denied[refused{h.tenants[d.Key], d.Reason.String(), d.Dimension.String(), d.Class, d.Limit, d.Shadow}] += d.Calls
	}
	for _, w := range m.Waits {
		h.now[w.Class] = w.Now
		for _, n := range w.Within {
			h.waited[w.Class] += n
		}
	}
	for _, s := range m.Seen {
		if n, ok := fleet.ParseName(s.Key); ok && s.Whole {
			h.used[h.tenants[n.Key]+" "+n.Dimension.String()] = s.Used
		}
	}
	return 204, nil
}

// What a control plane is told of refusals adds up to what callers were told, by whom and why, whatever is lost on the way; and who
// waits is known while they do. An Envoy that has its limits for itself asks for nothing, and says what it uses.
func TestRefusalsAreTold(t *testing.T) {
	tenants := []string{"a", "b", "one", "shy", "small"}
	both(t, 2, toldPolicy, func(t *testing.T, p *filtertest.Process) {
		h := newHearer(t, 4, toldPolicy, tenants...)
		p.Node, p.Control, h.loss = "n", h.hear, 0.4
		want, sent := map[refused]int64{}, map[string]int64{}
		var waiting, open []*filtertest.Exchange
		tell := func(x *filtertest.Exchange, tenant, class string) bool {
			if x.Reply == nil {
				return false
			}
			head := x.Reply.Headers
			n, _ := field(t, x.Reply.Body, "error.weir.limit").(float64)
			want[refused{tenant, head.Get("x-weir-reason"), head.Get("x-weir-dimension"), class, int64(n), false}]++
			return true
		}
		for i := range 150 {
			tenant, class := tenants[h.rng.IntN(len(tenants))], []string{"patient", "interactive"}[h.rng.IntN(2)]
			q := chat(tenant, "hi", 5)
			if tenant == "small" {
				q = chat(tenant, "hi", 500)
			}
			q.Headers = append(q.Headers, [2]string{"x-priority", class})
			x := p.Worker(i).Open(q)
			switch {
			case tell(x, tenant, class):
			case !x.Sent:
				waiting = append(waiting, x)
				p.Sleep(2100 * time.Millisecond) // it is told that one waits
				if !tell(x, tenant, class) {
					sent[tenant]++
					open = append(open, x)
				}
			default:
				if sent[tenant]++; tenant == "shy" && sent[tenant] > 1 {
					want[refused{"shy", "limit_exceeded", "rpm", class, 1, true}]++
				}
				open = append(open, x)
			}
			p.Sleep(50 * time.Millisecond)
			if i == 40 { // the window of a minute has not moved yet
				h.loss = 0
				p.Sleep(2 * time.Second)
				if h.used["a rpm"] != sent["a"] || sent["a"] == 0 {
					t.Errorf("told that %d calls of a count, and there are %d", h.used["a rpm"], sent["a"])
				}
				h.loss = 0.4
			}
		}
		h.loss = 0
		for _, x := range open {
			x.Close()
		}
		p.Sleep(10 * time.Second)
		for k, n := range want {
			if h.denied[k] != n && !k.shadow {
				t.Errorf("%+v: told %d, want %d", k, h.denied[k], n)
			}
		}
		for k, n := range h.denied {
			if want[k] != n && !k.shadow {
				t.Errorf("%+v: told %d, want %d", k, n, want[k])
			}
			if k.shadow && k.tenant != "shy" {
				t.Errorf("%+v: told %d", k, n)
			}
		}
		if len(want) < 8 || h.waited["patient"] != int64(len(waiting)) || len(waiting) == 0 || h.now["patient"] != 0 {
			t.Errorf("%d kinds; told that %d have waited and %d wait, of %d", len(want), h.waited["patient"], h.now["patient"], len(waiting))
		}
		p.Sleep(time.Minute)
		if h.asks > 0 || h.used["a rpm"] != 0 {
			t.Errorf("%d asks; told that %d calls of a count, after a minute without any", h.asks, h.used["a rpm"])
		}
	})
}

// While calls wait the control plane is told so, over all workers, and that it is over.
func TestWaitsAreTold(t *testing.T) {
	both(t, 2, toldPolicy, func(t *testing.T, p *filtertest.Process) {
		h := newHearer(t, 5, toldPolicy, "one")
		p.Node, p.Control = "n", h.hear
		q := chat("one", "hi", 5)
		q.Headers = append(q.Headers, [2]string{"x-priority", "patient"})
		first := p.Worker(0).Open(q)
		for i := range 3 {
			if x := p.Worker(i).Open(q); !first.Sent || x.Sent || x.Reply != nil {
				t.Fatalf("%+v", x.Reply)
			}
		}
		p.Sleep(1800 * time.Millisecond)
		if h.now["patient"] != 3 {
			t.Errorf("told that %d wait", h.now["patient"])
		}
		p.Sleep(5 * time.Second)
		if h.now["patient"] != 0 || h.waited["patient"] != 3 || h.denied[refused{"one", "queue_timeout", "in_flight", "patient", 1, false}] != 3 {
			t.Errorf("told that %d wait and %d have; %v", h.now["patient"], h.waited["patient"], h.denied)
		}
	})
}

// However many are refused, a message stays short; and none is forgotten, if it is not said any more whose they are.
func TestManyRefusalsAreTold(t *testing.T) {
	both(t, 1, toldPolicy, func(t *testing.T, p *filtertest.Process) {
		h := newHearer(t, 6, toldPolicy)
		longest := 0
		p.Node = "n"
		p.Control = func(path string, body []byte) (int, []byte) {
			longest = max(longest, len(body))
			return h.hear(path, body)
		}
		const callers = 300
		for i := range callers {
			for range 8 {
				p.Worker(0).Open(chat("t"+strconv.Itoa(i), "hi", 5)).Close()
			}
		}
		p.Sleep(5 * time.Second)
		total := int64(0)
		for _, n := range h.denied {
			total += n
		}
		if total != 2*callers || longest > 64<<10 {
			t.Errorf("told of %d refusals, want %d, in %d bytes", total, 2*callers, longest)
		}
	})
}
