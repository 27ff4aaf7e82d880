// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
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
	if os.Getenv("WEIR_SOAK") != "" {
		t.Run("mixed", func(t *testing.T) { t.Parallel(); mixedTraffic(t) })
	}
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
