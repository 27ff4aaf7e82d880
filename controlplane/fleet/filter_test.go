// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
	"github.com/weirproxy/weir/policy/fleet"
	"github.com/weirproxy/weir/policyfile"
)

// Here the filter itself, two workers in each of several Envoys, talks to the core in virtual time, over a network that loses,
// delays and doubles. What leaves for the provider is held against every limit of the policy, in any window.

const mesh = `apiVersion: weir/v1
trust: [all]
who:
  tenant: [header x-tenant, default none]
  user: [header x-user]
  tree: [header x-tree]
providers:
  openai:
    upstream: http://127.0.0.1:1
    models:
      gpt-4o: {tpm: 60_000}
      "*": {tpm: 30_000, window: continuous}
limits:
  tenant:
    default: {rpm: 30}
    big: {rpm: 6000, tpd: 150_000, reset: UTC}
  user:
    default: {tpm: 20_000}
  tree:
    default: {calls: 12, tokens: 5000, ttl: 5m}
`

// A mesh of Envoys with the filter.
type meshWorld struct {
	t      testing.TB
	rng    *rand.Rand
	now    int64
	store  *memory
	policy *policyfile.Result
	core   *core
	envoys []*meshEnvoy
	mail   []letter
	loss   float64
	delay  int64
	calls  []*meshCall

	refuses func(*meshCall) bool // what the provider does; nil: it serves all, and tells of a limit
	denied  map[string]int
	ratios  int // that Envoys have told
	told    int // limits, likewise
}

type meshEnvoy struct {
	*filtertest.Process
	open  []*meshCall
	rate  float64 // calls a second
	rest  float64
	lives int
}

// A meshCall is one call that came to an Envoy.
type meshCall struct {
	*filtertest.Exchange
	envoy                     *meshEnvoy
	model, tenant, user, tree string
	came, at, ends            int64 // at: when it was sent
	output                    int64 // tokens that it will use
	input                     int64
	asked                     int64 // the most output it may use
	over                      bool

	process *filtertest.Process
	worker  *filtertest.Worker
	lost    bool // its VM has trapped
}

func newMesh(t testing.TB, seed uint64, envoys int, text string) *meshWorld {
	w := &meshWorld{t: t, rng: rand.New(rand.NewPCG(seed, 3)), now: 1, store: &memory{records: map[string][]byte{}}, delay: int64(10 * time.Millisecond), denied: map[string]int{}}
	var err error
	w.policy, err = policyfile.Parse("mesh.yaml", []byte(text))
	must(t, err)
	w.policy, err = w.policy.Shared()
	must(t, err)
	w.start()
	for range envoys {
		e := &meshEnvoy{rate: 2}
		w.envoys = append(w.envoys, e)
		w.boot(e)
	}
	return w
}

func (w *meshWorld) wall() time.Time { return worldWall.Add(time.Duration(w.now)) }

func (w *meshWorld) start() {
	c, err := newCore(w.now, w.wall(), w.store, slog.New(slog.DiscardHandler), func() int { return len(w.envoys) })
	must(w.t, err)
	c.setPolicy(w.policy.Policy, w.policy.Spec)
	w.core = c
}

// boot starts an Envoy, for the first time or anew.
func (w *meshWorld) boot(e *meshEnvoy) {
	p, err := filtertest.NewProcess(nil, 2)
	must(w.t, err)
	e.lives++
	p.Clock, p.Wall, p.Node = int64(time.Hour)+w.rng.Int64N(1e15), w.wall(), fmt.Sprint("envoy", slices.Index(w.envoys, e))
	p.Control = func(path string, body []byte) (int, []byte) { return w.post(e, path, body) }
	must(w.t, p.Configure(w.policy.JSON))
	e.Process, e.open = p, nil
}

func (w *meshWorld) post(e *meshEnvoy, path string, body []byte) (int, []byte) {
	if w.core == nil || path != fleet.ReportPath || w.rng.Float64() < w.loss {
		return 0, nil
	}
	m, err := fleet.DecodeFromNode(body)
	must(w.t, err)
	w.ratios, w.told = w.ratios+len(m.Ratios), w.told+len(m.Learned)
	w.core.at(w.now, w.wall())
	if !w.core.report(m) {
		return 200, fleet.Hello{Epoch: w.core.epoch}.Encode()
	}
	if w.rng.Float64() < w.loss {
		return 0, nil // it has arrived, and the answer is lost
	}
	return 204, nil
}

func (w *meshWorld) send(open func()) {
	if w.rng.Float64() >= w.loss {
		w.mail = append(w.mail, letter{w.now + int64(w.rng.ExpFloat64()*float64(w.delay)), open})
	}
}

func (w *meshWorld) run(d time.Duration) {
	for end := w.now + int64(d); w.now < end; w.now += worldStep {
		deliver(&w.mail, w.now)
		for _, e := range w.envoys {
			if e.Process != nil {
				w.use(e)
				e.Sleep(time.Duration(worldStep))
				w.follow(e)
			}
		}
		w.tick()
	}
}

func (w *meshWorld) tick() {
	if w.core == nil {
		return
	}
	w.core.at(w.now, w.wall())
	documents, _ := w.core.tick()
	for id, b := range documents {
		for i, e := range w.envoys {
			if fmt.Sprint("envoy", i) == id && e.Process != nil {
				p := e.Process
				w.send(func() { p.TakeShares(b) })
			}
		}
	}
}

func (w *meshWorld) pick(of ...string) string { return of[w.rng.IntN(len(of))] }

// use has callers come to an Envoy.
func (w *meshWorld) use(e *meshEnvoy) {
	for e.rest += e.rate * float64(worldStep) / 1e9; e.rest >= 1; e.rest-- {
		c := &meshCall{
			envoy: e, came: w.now, model: w.pick("gpt-4o", "gpt-4o", "other"), tenant: w.pick("small", "big", "big", "big"),
			user: w.pick("a", "b", "c", "d", "e", "f", "g"), asked: 50 + w.rng.Int64N(400),
		}
		if w.rng.IntN(4) == 0 {
			c.tree = w.pick("t1", "t2")
		}
		c.output = w.rng.Int64N(c.asked) + 1
		body := fmt.Sprintf(`{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":"Say something of your own."}]}`, c.model, c.asked)
		r := filtertest.Request{Path: "/openai/v1/chat/completions", Body: []byte(body), Headers: [][2]string{
			{"content-type", "application/json"}, {"x-tenant", c.tenant}, {"x-user", c.user},
		}}
		if c.tree != "" {
			r.Headers = append(r.Headers, [2]string{"x-tree", c.tree})
		}
		c.process, c.worker = e.Process, e.Worker(w.rng.IntN(2))
		if c.worker.Dead { // Envoy loads another VM with the next stream
			must(w.t, c.worker.Reload(w.policy.JSON))
		}
		c.Exchange = c.worker.Open(r)
		w.calls, e.open = append(w.calls, c), append(e.open, c)
	}
}

const meshInput = 13 // tokens of each call, as a provider counts them

// follow has sent calls be answered, and notes what has become of those that waited.
func (w *meshWorld) follow(e *meshEnvoy) {
	rest := e.open[:0]
	for _, c := range e.open {
		switch {
		case c.Reply != nil:
			w.denied[c.Reply.Headers.Get("x-weir-reason")+" "+c.Reply.Headers.Get("x-weir-tier")+" "+c.Reply.Headers.Get("x-weir-dimension")]++
			c.Close()
			continue
		case c.Sent && c.at == 0:
			c.at, c.input = w.now, meshInput
			c.ends = w.now + w.rng.Int64N(int64(8*time.Second))
		case c.Sent && w.now >= c.ends:
			c.over = true
			if w.refuses != nil && w.refuses(c) {
				c.Respond(429, false, [2]string{"content-type", "application/json"})
				c.Chunk([]byte(`{"error":{"message":"x","type":"tokens","code":"rate_limit_exceeded"}}`), true)
				c.Close()
				continue
			}
			if w.refuses == nil {
				c.Respond(200, false, [2]string{"content-type", "application/json"}, [2]string{"x-ratelimit-limit-tokens", "90000"})
			} else {
				c.Respond(200, false, [2]string{"content-type", "application/json"})
			}
			c.Chunk(fmt.Appendf(nil, `{"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, c.input, c.output, c.input+c.output), true)
			c.Close()
			continue
		}
		rest = append(rest, c)
	}
	e.open = rest
}

// tokens are what a call counts as: what it used, or while it is open what it may use.
func (c *meshCall) tokens() int64 {
	if c.over {
		return c.input + c.output
	}
	return c.input + c.asked
}

// most is the most that any window had of the calls that are meant.
func (w *meshWorld) most(window time.Duration, meant func(*meshCall) bool, units func(*meshCall) int64) (most int64) {
	var l []*meshCall
	for _, c := range w.calls {
		if c.at > 0 && meant(c) {
			l = append(l, c)
		}
	}
	slices.SortFunc(l, func(a, b *meshCall) int { return int(a.at - b.at) })
	sum, from := int64(0), 0
	for _, c := range l {
		for sum += units(c); c.at-l[from].at >= int64(window); from++ {
			sum -= units(l[from])
		}
		most = max(most, sum)
	}
	return most
}

func one(*meshCall) int64 { return 1 }

// stuck are calls that are neither sent nor answered, and have been there for long.
func (w *meshWorld) stuck() (n int) {
	for _, c := range w.calls {
		if c.envoy.Process == c.process && c.came < w.now-int64(time.Second) && !c.Sent && c.Reply == nil && !c.worker.Dead && !c.lost {
			n++
			w.t.Logf("%v %v %+v %v %v", time.Duration(c.came), slices.Index(w.envoys, c.envoy), c.model+c.tenant+c.user+c.tree, c.Held, c.worker == c.process.Worker(0))
		}
	}
	return n
}

func (w *meshWorld) tpd() int64 { return int64(*w.policy.Spec.Limits.Tenant["big"].TPD) }

// check holds what was sent against the policy.
func (w *meshWorld) check() {
	w.t.Helper()
	tokens := (*meshCall).tokens
	for _, l := range []struct {
		name   string
		limit  int64
		window time.Duration
		meant  func(*meshCall) bool
		units  func(*meshCall) int64
	}{
		{"gpt-4o tpm", 60_000, time.Minute, func(c *meshCall) bool { return c.model == "gpt-4o" }, tokens},
		{"others' tpm, with a burst", 30_000 + 7500, time.Minute, func(c *meshCall) bool { return c.model == "other" }, tokens},
		{"small rpm", 30, time.Minute, func(c *meshCall) bool { return c.tenant == "small" }, one},
		{"big rpm", 6000, time.Minute, func(c *meshCall) bool { return c.tenant == "big" }, one},
		{"big tpd", w.tpd(), 12 * time.Hour, func(c *meshCall) bool { return c.tenant == "big" }, tokens},
		{"t1 calls", 12, 5 * time.Minute, func(c *meshCall) bool { return c.tree == "t1" && c.tenant == "big" && c.user == "a" }, one},
		{"t2 tokens", 5000, 5 * time.Minute, func(c *meshCall) bool { return c.tree == "t2" && c.tenant == "big" && c.user == "b" }, tokens},
		{"user tpm", 20_000, time.Minute, func(c *meshCall) bool { return c.tenant == "big" && c.user == "a" }, tokens},
	} {
		most := w.most(l.window, l.meant, l.units)
		w.t.Logf("%-28s %7d of %7d", l.name, most, l.limit)
		if most > l.limit {
			w.t.Errorf("%s: %d of %d in a window", l.name, most, l.limit)
		}
	}
}

func (w *meshWorld) sent() (n int) {
	for _, c := range w.calls {
		if c.at > 0 {
			n++
		}
	}
	return n
}

// A mesh in which nothing breaks uses what there is.
func TestFilterShares(t *testing.T) {
	w := newMesh(t, 1, 3, strings.Replace(mesh, "tpd: 150_000", "tpd: 1_500_000", 1))
	for _, e := range w.envoys {
		e.rate = 12
	}
	w.run(4 * time.Minute)
	w.check()
	if n := w.stuck(); n > 0 {
		t.Errorf("%d calls are neither sent nor answered", n)
	}
	if w.ratios == 0 || w.told == 0 {
		t.Errorf("%d ratios and %d limits were told", w.ratios, w.told)
	}
	posts := 0
	for _, e := range w.envoys {
		posts += e.Posts
		for _, l := range e.Logs {
			if !strings.Contains(l, "it says that its limit is") {
				t.Error(l)
			}
		}
	}
	t.Logf("%d of %d calls sent, %v, %.2f posts a second and Envoy", w.sent(), len(w.calls), w.denied, float64(posts)/240/3)
	if perSecond := float64(posts) / 240 / 3; perSecond > 4.1 {
		t.Errorf("%.1f posts a second and Envoy", perSecond)
	}
	for _, l := range []struct {
		name  string
		least float64 // of what a minute has, from the third on
		limit float64
		meant func(*meshCall) bool
		units func(*meshCall) int64
	}{
		{"gpt-4o tpm", 0.87, 60_000, func(c *meshCall) bool { return c.model == "gpt-4o" }, (*meshCall).tokens},
		{"others' tpm", 0.87, 30_000, func(c *meshCall) bool { return c.model == "other" }, (*meshCall).tokens},
		{"small rpm", 0.87, 30, func(c *meshCall) bool { return c.tenant == "small" }, one},
	} {
		sum := int64(0)
		for _, c := range w.calls {
			if c.at > int64(2*time.Minute) && l.meant(c) {
				sum += l.units(c)
			}
		}
		used := float64(sum) / 2 / l.limit
		t.Logf("%s: %.3f used", l.name, used)
		if used < l.least {
			t.Errorf("%s: %.3f used", l.name, used)
		}
	}
}

// A call that comes first to an Envoy waits for no more than a round trip or two.
func TestFirstCallIsServedSoon(t *testing.T) {
	w := newMesh(t, 1, 2, mesh)
	for _, e := range w.envoys {
		e.rate = 0
	}
	w.run(time.Second)
	for i, model := range []string{"gpt-4o", "gpt-4o", "other", "other"} {
		x := w.envoys[i%2].Worker(i / 2).Open(filtertest.Request{
			Path: "/openai/v1/chat/completions", Body: fmt.Appendf(nil, `{"model":%q,"max_tokens":100,"messages":[{"role":"user","content":"Hi"}]}`, model),
			Headers: [][2]string{{"content-type", "application/json"}, {"x-tenant", fmt.Sprint(i)}, {"x-user", "u"}},
		})
		from := w.now
		for !x.Sent && x.Reply == nil {
			w.run(time.Duration(worldStep))
		}
		if took := time.Duration(w.now - from); x.Reply != nil || took > 100*time.Millisecond {
			t.Errorf("%d: %v after %v", i, x.Reply, took)
		}
	}
}

// A stock is used up to its end by calls that come as fast as they are answered, at two Envoys in turn.
func TestStockIsUsedUp(t *testing.T) {
	w := newMesh(t, 1, 2, strings.Replace(mesh, "tpd: 150_000", "rpd: 25", 1))
	for _, e := range w.envoys {
		e.rate = 0
	}
	w.run(time.Second)
	w.delay = int64(40 * time.Millisecond) // so that answers to earlier draws come while others wait
	sent := 0
	for i := range 60 {
		x := w.envoys[i%2].Worker(i / 2).Open(chatOf("gpt-4o", 5))
		for !x.Sent && x.Reply == nil {
			w.run(time.Duration(worldStep))
		}
		if x.Sent {
			sent++
			x.Answer(200, `{"usage":{"prompt_tokens":9,"completion_tokens":1}}`)
		}
	}
	if sent < 23 || sent > 25 {
		t.Errorf("%d of 25 were sent", sent)
	}
}

// A first call may be for most of a limit.
func TestFirstCallMayBeLarge(t *testing.T) {
	w := newMesh(t, 1, 2, mesh)
	for _, e := range w.envoys {
		e.rate = 0
	}
	w.run(time.Second)
	x := w.envoys[1].Worker(0).Open(chatOf("gpt-4o", 15_000))
	w.run(200 * time.Millisecond)
	if !x.Sent {
		t.Errorf("%+v", x.Reply)
	}
}

// A refusal cuts a rate by what its body says it is: not if the account is out of credit.
func TestRefusalsAreReportedByKind(t *testing.T) {
	for code, cuts := range map[string]bool{"rate_limit_exceeded": true, "insufficient_quota": false} {
		w := newMesh(t, 1, 1, mesh)
		w.envoys[0].rate = 0
		w.run(time.Second)
		x := w.envoys[0].Worker(0).Open(chatOf("gpt-4o", 100))
		w.run(200 * time.Millisecond)
		if !x.Sent {
			t.Fatalf("%+v", x.Reply)
		}
		x.Respond(429, false, [2]string{"content-type", "application/json"})
		x.Chunk(fmt.Appendf(nil, `{"error":{"message":"x","type":%q,"code":%q}}`, code, code), true)
		x.Close()
		w.run(3 * time.Second)
		if got := len(w.core.changes) > 0; got != cuts {
			t.Errorf("%s: cut %v", code, got)
		}
	}
}

// Who comes back when a lease has ended is given a share again: none of its calls is refused for a floor.
func TestWhoComesBackIsGivenAShare(t *testing.T) {
	w := newMesh(t, 1, 2, mesh)
	for _, e := range w.envoys {
		e.rate = 0
	}
	w.run(time.Second)
	for range 3 {
		var open []*filtertest.Exchange
		for range 6 {
			open = append(open, w.envoys[0].Worker(1).Open(chatOf("other", 100)))
		}
		w.run(time.Second)
		for i, x := range open {
			if !x.Sent {
				t.Fatalf("call %d: %+v", i, x.Reply)
			}
			x.Answer(200, `{"usage":{"prompt_tokens":9,"completion_tokens":1}}`)
		}
		w.run(100 * time.Second)
	}
}

// All workers hear of a cut: what was sent before it says nothing of the rate since, also where it is refused much later.
func TestWorkersHearOfRates(t *testing.T) {
	w := newMesh(t, 1, 1, mesh)
	w.envoys[0].rate = 0
	w.run(time.Second)
	for worker := range 2 {
		cuts := len(w.core.changes)
		var open []*filtertest.Exchange
		for range 6 {
			r := chatOf("gpt-4o", 100)
			r.Headers[2][1] = fmt.Sprint("user", worker)
			open = append(open, w.envoys[0].Worker(worker).Open(r))
		}
		w.run(time.Second)
		for i, x := range open {
			if !x.Sent {
				t.Fatalf("worker %d call %d at %v %+v", worker, i, time.Duration(w.now), x.Reply)
			}
			x.Respond(429, false, [2]string{"content-type", "application/json"})
			x.Chunk([]byte(`{"error":{"message":"x","type":"tokens","code":"rate_limit_exceeded"}}`), true)
			x.Close()
			if i == 0 {
				w.run(8 * time.Second)
				w.envoys[0].Worker(worker).Open(chatOf("gpt-4o", 100)).Close() // so that the worker has the limit in mind
				w.run(4 * time.Second)
			}
		}
		w.run(5 * time.Second)
		if n := len(w.core.changes) - cuts; n != 1 {
			t.Errorf("worker %d: its refusals cut the rate %d times", worker, n)
		}
		w.run(15 * time.Second)
	}
}

func chatOf(model string, output int) filtertest.Request {
	return filtertest.Request{
		Path: "/openai/v1/chat/completions", Body: fmt.Appendf(nil, `{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":"Hi"}]}`, model, output),
		Headers: [][2]string{{"content-type", "application/json"}, {"x-tenant", "big"}, {"x-user", "u"}},
	}
}

// A new controller that has what the one before kept lends on at once, and no more than there is.
func TestLoansOutliveTheController(t *testing.T) {
	w := newMesh(t, 7, 2, mesh)
	for _, e := range w.envoys {
		e.rate = 0
	}
	small := chatOf("gpt-4o", 5)
	small.Headers[1][1] = "small"
	sent := func(calls int) (n int) { // one every two seconds, which is all that the limit lets through
		for i := range calls {
			x := w.envoys[i%2].Worker(0).Open(small)
			w.run(2 * time.Second)
			if x.Sent {
				n++
				x.Answer(200, `{"usage":{"prompt_tokens":9,"completion_tokens":1}}`)
			}
			if x.Reply != nil && !strings.Contains(x.Reply.Body, `"remaining":0,`) {
				t.Error(x.Reply.Body)
			}
			x.Close()
		}
		return n
	}
	w.run(time.Second)
	before := sent(15)
	w.start()
	w.run(3 * time.Second)
	after, rest := sent(4), sent(20)
	if before < 15 || after < 4 || rest < 14 {
		t.Errorf("%d calls with the first controller, %d in the seconds 3 to 11 of the next, %d later", before, after, rest)
	}
}

// A controller that comes back after all leases have ended lends again within three seconds, for every Envoy says what it holds, also
// one of which nobody wants anything. Where one has died and cannot say, it waits.
func TestBackAfterLeasesHaveEnded(t *testing.T) {
	for name, dies := range map[string]bool{"all live": false, "one has died": true} {
		t.Run(name, func(t *testing.T) {
			w := newMesh(t, 5, 3, strings.Replace(mesh, "tpd: 150_000", "tpd: 15_000_000", 1))
			w.envoys[0].rate, w.envoys[1].rate, w.envoys[2].rate = 12, 8, 0
			w.run(time.Minute)
			w.core = nil
			w.run(40 * time.Second)
			if dies {
				w.envoys[1].Process = nil
			}
			w.start()
			w.run(3 * time.Second)
			from := w.now
			w.run(10 * time.Second)
			tokens, ideal := w.most(time.Minute, func(c *meshCall) bool { return c.at > from && c.model == "gpt-4o" }, (*meshCall).tokens), int64(10_000)
			if back := tokens > ideal/2; back == dies {
				t.Errorf("%d tokens in the seconds 3 to 13, the limit is %d", tokens, ideal)
			}
			w.run(2 * time.Minute)
			w.check()
		})
	}
}

// What the store does not know of, the next controller would not wait for: so an Envoy is sent nothing before.
func TestNothingIsGivenToWhomTheStoreDoesNotKnow(t *testing.T) {
	w := newMesh(t, 5, 2, mesh)
	w.envoys[0].rate = 0
	w.envoys[1].rate = 0
	w.run(time.Second)
	send := func(e int) bool {
		x := w.envoys[e].Worker(0).Open(chatOf("gpt-4o", 100))
		w.run(time.Second)
		defer x.Close()
		return x.Sent
	}
	if !send(0) {
		t.Error("a call at an Envoy that the store knows was not sent")
	}
	w.store.broken = true
	if send(1) || !send(0) {
		t.Error("an Envoy was given something that the store does not know, or the other is given nothing more")
	}
	w.store.broken = false
	w.run(time.Second)
	if !send(1) {
		t.Error("a call was not sent when the store knew of its Envoy")
	}
}

// Whatever breaks, no limit does. WEIR_SEED=N tries forty seeds from N on.
func TestFilterSharesUnderFaults(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	from := uint64(100)
	if n, err := strconv.ParseUint(os.Getenv("WEIR_SEED"), 10, 64); err == nil {
		from, seeds = n, 40
	}
	for seed := from; seed < from+seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newMesh(t, seed, 2+int(seed%3), mesh)
			for range 30 {
				w.breakSomething()
				w.run(time.Duration(w.rng.Int64N(int64(8 * time.Second))))
			}
			w.mend()
			w.run(100 * time.Second)
			w.check()
			if n := w.stuck(); n > 0 {
				t.Errorf("%d calls are neither sent nor answered", n)
			}
			t.Logf("%d of %d calls sent, %v", w.sent(), len(w.calls), w.denied)
			recovered := false
			for _, c := range w.calls {
				recovered = recovered || c.at > w.now-int64(5*time.Second)
			}
			if !recovered {
				t.Error("nothing is sent after all")
			}
		})
	}
}

func (w *meshWorld) mend() {
	w.loss, w.store.broken = 0, false
	if w.core == nil {
		w.start()
	}
	for _, e := range w.envoys {
		if e.Process == nil {
			w.boot(e)
		}
	}
}

func (w *meshWorld) breakSomething() {
	e := w.envoys[w.rng.IntN(len(w.envoys))]
	what := w.rng.IntN(9)
	w.t.Log(time.Duration(w.now), what, slices.Index(w.envoys, e))
	switch what {
	case 0:
		w.loss = w.rng.Float64() * 0.7
	case 1:
		w.loss = 0
	case 2:
		w.core = nil
	case 3:
		if w.core == nil {
			w.start()
		}
	case 4: // as kill -9 does: what is open there may be used to the full
		e.Process = nil
	case 5:
		if e.Process == nil {
			w.boot(e)
		}
	case 6: // a VM traps: what waits there is lost, and another worker has to talk to the controller
		if e.Process != nil {
			i := w.rng.IntN(2)
			e.Worker(i).Dead = true
			for _, c := range w.calls {
				c.lost = c.lost || c.worker == e.Worker(i)
			}
		}
	case 7:
		e.rate = w.rng.Float64() * 40
	case 8:
		if e.Process != nil {
			must(w.t, e.Configure(w.policy.JSON))
		}
	}
}
