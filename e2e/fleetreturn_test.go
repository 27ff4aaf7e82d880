// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const returnPolicy = `
apiVersion: weir/v1
trust: [all]
who:
  tenant: [header x-tenant, default none]
providers:
  openai:
    upstream: "http://MOCK"
    models: {gpt-4o: {rpm: 1200}}
limits:
  tenant: {default: {rpm: 100_000}}
fleet: {lease: 3s}
`

// A control plane that was away for longer than a lease is back within three seconds of its return: Envoys have all of the limit again,
// although it holds in any minute and the control plane knows only by them what they have spent.
func TestControlPlaneReturns(t *testing.T) {
	f := &fleet{split: newSplit(t, returnPolicy)}
	store := "bolt:" + filepath.Join(t.TempDir(), "weir.db")
	serve := func() {
		f.serve = start(t, "serve", "--policy", f.policy, "--xds", f.xds, "--status", f.status, "--listen", "127.0.0.1:0", "--store", store)
		f.serve.find(`^control plane: xDS on (\S+),`)
	}
	serve()
	var wg sync.WaitGroup
	for _, name := range []string{"envoy-0", "envoy-1"} {
		e := &fleetEnvoy{name: name, xds: f.xds, control: f.status}
		f.envoys = append(f.envoys, e)
		wg.Go(func() { f.boot(e) })
	}
	if wg.Wait(); t.Failed() {
		t.FailNow()
	}
	// offer has 40 calls a second come for so long, three at one Envoy for each at the other, and says how many were sent.
	offer := func(length time.Duration) (sent int) {
		for n, end := 0, time.Now().Add(length); time.Now().Before(end); n++ {
			at := 0
			if n%4 == 3 {
				at = 1
			}
			sent += send(t, f.at(at), call{tenant: "a", output: 5})[200]
			time.Sleep(25 * time.Millisecond)
		}
		return sent
	}
	before := offer(6 * time.Second)
	f.serve.kill()
	offer(5 * time.Second) // until leases have ended
	floors := offer(3 * time.Second)
	serve()
	back := time.Now()
	offer(3 * time.Second)
	after := offer(4 * time.Second)
	t.Logf("%d calls in 6 s before, %d in 3 s without, %d in the seconds 3 to 7 after; the limit is 20 a second", before, floors, after)
	if floors > 20 || after < 40 {
		t.Errorf("%d calls were sent in 3 s without a control plane, %d in the seconds 3 to 7 after its return", floors, after)
	}
	if most := f.most("a", time.Minute, oneCall); most > 1200 || time.Since(back) > time.Minute {
		t.Errorf("%d calls in a minute, the limit is 1200", most)
	}
}
