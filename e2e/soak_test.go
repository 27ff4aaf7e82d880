// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// What CI does of it takes three minutes; make soak says in WEIR_SOAK how long.
const soakDefault = 150 * time.Second

func soakLength(t testing.TB) time.Duration {
	if os.Getenv("WEIR_SOAK") == "" {
		return soakDefault
	}
	d, err := time.ParseDuration(os.Getenv("WEIR_SOAK"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// soakSeed is by what all is chosen: WEIR_SEED, or a new one each time. What went wrong by one is likely to go wrong by it again,
// but no more than likely: who comes first is the machine's choice.
func soakSeed(t testing.TB) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("WEIR_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	t.Logf("WEIR_SEED=%d does the same again", seed)
	return seed
}

// booting is held while Envoys start, for five that compile the filter at once take too long on a small machine.
var booting sync.Mutex

// Two soaks side by side: a fleet that fails part by part, and one Envoy under all that callers and providers do to it.
func TestSoak(t *testing.T) {
	t.Run("fleet", func(t *testing.T) { t.Parallel(); fleetUnderFaults(t) })
	t.Run("mixed", func(t *testing.T) { t.Parallel(); mixedTraffic(t) })
}

// A soak is an Envoy, its control plane with a Redis, a provider that counts, one that answers nonsense, and callers of all kinds.
type soak struct {
	*split
	seed      uint64
	store     string
	redis     *os.Process
	envoyProc *os.Process
	wild      string // address of the provider that answers nonsense
	reports   *gap
	reset     string // when the days of the ledger tenants begin: not now
	access    string // file of Envoy's access log
	log       *output
	storm     atomic.Bool // the provider refuses
	mu        sync.Mutex
	done      []soakCall
	inForce   []soakLimit // of the tenant moving
	samples   []soakSample
}

// A soakLimit may have been in force from a time on.
type soakLimit struct {
	tpm      int64
	from, to time.Time // to: when Envoy had acknowledged the next one
}

const soakPolicy = `
apiVersion: weir/v1
trust: [all]
who:
  tenant: [header x-tenant, default none]
  user: [header x-user, body user]
  tree: [header x-tree]
  class: [header x-priority, default hasty]
providers:
  openai:    {upstream: "http://MOCK", models: {"*": {tpm: 2_000_000, rpm: 60_000}}}
  stormy:    {upstream: "http://MOCK", dialect: openai, models: {"*": {tpm: 400_000, rpm: 3_000}}}
  anthropic: {upstream: "http://MOCK", models: {"*": {tpm: 2_000_000}}}
  wild:      {upstream: "http://WILD", dialect: openai, models: {"*": {rpm: 60_000}}, adapt: off}
  feral:     {upstream: "http://WILD", dialect: openai, models: {"*": {rpm: 60_000}}}
  search:    {upstream: "http://MOCK", dialect: generic}
limits:
  tenant:
    default:  {tpm: 60_000, in_flight: 8}
    exact:    {tpm: 6_000, in_flight: 12}
    few:      {rpm: 30}
    moving:   {tpm: MOVING}
    ledger-0: {tpd: 1_000_000_000, reset: UTC RESET, in_flight: 40}
    ledger-1: {tpd: 1_000_000_000, reset: UTC RESET, in_flight: 40}
    ledger-2: {tpd: 1_000_000_000, reset: UTC RESET, in_flight: 40}
  user: {default: {rpm: 300}}
  tree: {default: {calls: 40, retries: 5, ttl: 1m}}
  tool: {search: {rpm: 600}}
classes:
  critical: {priority: 3, on_limit: queue, wait: 4s}
  normal:   {priority: 2, on_limit: queue, wait: 4s, aging: 2s}
  hasty:    {priority: 1}
queue: {entries: 100, bytes: 8MiB}
fleet: {scope: node, lease: 5s}
log: {access: true, caller: true}
explain: {header: true}
endpoints: true
fanout: {ttl: 2s}
hints: {header: true}
`

var soakMoves = []int64{12_000, 6_000, 9_000}

func (s *soak) text(tpm int64) string {
	return strings.NewReplacer("MOVING", fmt.Sprint(tpm), "RESET", s.reset, "WILD", s.wild).Replace(soakPolicy)
}

// push gives the control plane a policy in which moving has another limit; with wait it waits until Envoy has it.
func (s *soak) push(tpm int64, more string, wait bool) {
	s.t.Helper()
	now := time.Now()
	s.inForce = append(s.inForce, soakLimit{tpm: tpm, from: now})
	replaceFile(s.t, s.policy, strings.ReplaceAll(s.text(tpm)+more, "MOCK", s.mock.addr))
	if !wait {
		return
	}
	eventually(s.t, time.Minute, func() (bool, string) {
		st := readStatus(s.t, s.status)
		for _, n := range st.Nodes {
			if n.ID == "e2e" && n.Policy == st.Policy.Version && st.Policy.Version != "" && st.Problem == nil {
				return true, ""
			}
		}
		return false, fmt.Sprintf("the policy is not acknowledged: %+v", st)
	})
	for i := range s.inForce[:len(s.inForce)-1] {
		if s.inForce[i].to.IsZero() {
			s.inForce[i].to = time.Now().Add(time.Second) // the workers follow
		}
	}
}

func (s *soak) control() {
	s.t.Helper()
	s.serve = start(s.t, "serve", "--policy", s.policy, "--xds", s.xds, "--status", s.status, "--listen", "127.0.0.1:0", "--store", s.store, "--name", "soak")
	s.serve.find(`^control plane: xDS on (\S+),`)
}

func newSoak(t *testing.T) *soak {
	s := &soak{seed: soakSeed(t), reset: time.Now().UTC().Add(12 * time.Hour).Format("15:04")}
	addr, redis := startRedis(t)
	s.store, s.redis = "redis://"+addr, redis
	s.wild = startWild(t, s.seed)
	s.split = newSplit(t, s.text(soakMoves[0]))
	s.inForce = []soakLimit{{tpm: soakMoves[0], from: time.Now()}}
	s.reports = startGap(t, s.status)
	s.control()
	booting.Lock()
	defer booting.Unlock()
	s.boot()
	s.push(soakMoves[0], "", true)
	return s
}

// mixedTraffic runs callers and faults side by side, and then looks at what is left.
func mixedTraffic(t *testing.T) {
	s := newSoak(t)
	length := soakLength(t)
	end := time.Now().Add(length)
	var wg sync.WaitGroup
	wg.Go(func() { s.watch(end) })
	for i := range soakCallers {
		wg.Go(func() { s.caller(rand.New(rand.NewPCG(s.seed, uint64(i))), i, end) })
	}
	s.chaos(rand.New(rand.NewPCG(s.seed, 1<<40)), end.Add(-20*time.Second))
	wg.Wait()
	s.judge()
}

// chaos lets one thing after another fail, in an order that is another in each round.
func (s *soak) chaos(r *rand.Rand, end time.Time) {
	stop := func(p *os.Process) { _ = p.Signal(syscall.SIGSTOP) }
	resume := func(p *os.Process) { _ = p.Signal(syscall.SIGCONT) }
	moves := 0
	faults := []struct {
		name       string
		begin, end func()
		length     time.Duration
	}{
		{"the policy moves", func() { moves++; s.push(soakMoves[moves%len(soakMoves)], "", true) }, func() {}, 6 * time.Second},
		{"the policy moves three times at once", func() {
			for range 3 {
				moves++
				s.push(soakMoves[moves%len(soakMoves)], "", false)
				time.Sleep(300 * time.Millisecond)
			}
		}, func() { s.push(soakMoves[moves%len(soakMoves)], "", true) }, time.Second},
		{"the policy is broken", func() { s.push(s.inForce[len(s.inForce)-1].tpm, "limits: [\n", false) }, func() { s.push(s.inForce[len(s.inForce)-1].tpm, "", true) }, 3 * time.Second},
		{"the control plane is killed", func() { s.serve.kill() }, func() { s.control() }, 4 * time.Second},
		{"the control plane stands still", func() { stop(s.serve.cmd.Process) }, func() { resume(s.serve.cmd.Process) }, 7 * time.Second},
		{"Redis stands still", func() { stop(s.redis) }, func() { resume(s.redis) }, 7 * time.Second},
		{"reports are lost", func() { s.reports.closed.Store(true) }, func() { s.reports.closed.Store(false) }, 6 * time.Second},
		{"the provider stands still", func() { stop(s.mock.cmd.Process) }, func() { resume(s.mock.cmd.Process) }, 3 * time.Second},
		{"Envoy stands still", func() { stop(s.envoyProc) }, func() { resume(s.envoyProc) }, 2 * time.Second},
		{"the provider refuses", func() { s.storm.Store(true) }, func() { s.storm.Store(false) }, 8 * time.Second},
	}
	for time.Now().Before(end) {
		for _, i := range r.Perm(len(faults)) {
			f := faults[i]
			if time.Until(end) < f.length {
				break
			}
			s.t.Logf("%s", f.name)
			f.begin()
			time.Sleep(f.length)
			f.end()
			time.Sleep(time.Duration(1000+r.IntN(3000)) * time.Millisecond)
		}
		if time.Until(end) < 10*time.Second {
			return
		}
	}
}
