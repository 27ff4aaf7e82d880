// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
)

// A fleet is a control plane and several real Envoys with two workers each.
type fleet struct {
	*split
	envoys []*fleetEnvoy
}

type fleetEnvoy struct {
	name         string
	xds, control string         // its control plane
	process      *envoy.Process // nil: down
	proxy        string
}

const fleetPolicy = `
apiVersion: weir/v1
trust: [all]
who:
  tenant: [header x-tenant, default none]
  tree: [header x-tree]
providers:
  openai:
    upstream: "http://MOCK"
    models: {gpt-4o: {tpm: 30_000}, small: {rpm: 10}}
limits:
  tenant: {default: {tpm: 12_000}, day: {rpd: 25, reset: UTC}}
  tree: {default: {calls: 10, tokens: 2000, ttl: 5m}}
`

func newFleet(t *testing.T, policy string, n int) *fleet {
	t.Helper()
	f := &fleet{split: newSplit(t, policy)}
	f.control()
	var wg sync.WaitGroup
	for i := range n {
		e := &fleetEnvoy{name: fmt.Sprintf("envoy-%d", i), xds: f.xds, control: f.status}
		f.envoys = append(f.envoys, e)
		wg.Go(func() { f.boot(e) })
	}
	if wg.Wait(); t.Failed() {
		t.FailNow()
	}
	return f
}

// boot starts an Envoy, for the first time or anew.
func (f *fleet) boot(e *fleetEnvoy) {
	f.t.Helper()
	log := new(output)
	p, err := envoy.Run(context.Background(), envoy.Options{
		Bootstrap:   []byte(run(f.t, "bootstrap", "--policy", f.policy, "--node", e.name, "--xds", e.xds, "--control", e.control, "--wasm", f.wasm)),
		Concurrency: 2, Log: log, StartTimeout: startTimeout,
	})
	if err != nil {
		f.t.Errorf("%v\n%s", err, tail(log.String(), 3000))
		return
	}
	f.t.Cleanup(func() {
		_ = p.Stop()
		if f.t.Failed() {
			f.t.Logf("%s wrote:\n%s", e.name, tail(log.String(), 2000))
		}
	})
	proxy, err := p.Listener(context.Background(), "weir")
	if err != nil {
		f.t.Error(err)
		return
	}
	e.process, e.proxy = p, proxy
}

// most is the most that the mock has seen of a tag within any window; units says what a call counts.
func (f *fleet) most(tag string, window time.Duration, units func(*event) int64) (most int64) {
	list := f.mock.events(tag)
	sum, from := int64(0), 0
	for i := range list {
		for sum += units(&list[i]); list[i].At-list[from].At >= int64(window); from++ {
			sum -= units(&list[from])
		}
		most = max(most, sum)
	}
	return most
}

func oneCall(*event) int64          { return 1 }
func tokensOf(e *event) int64       { return e.Input + e.Output }
func (f *fleet) at(i int) string    { return f.envoys[i%len(f.envoys)].proxy }
func within(d time.Duration) string { return d.Round(time.Millisecond).String() }

// Two Envoys share each limit: what the provider sees is never more than the policy says, and nearly all of it is used.
func TestFleetSharesLimits(t *testing.T) {
	if os.Getenv("WEIR_SOAK") == "" {
		t.Skip("make soak runs it: beside other tests on a small machine a round trip takes longer than a first call is held")
	}
	f := newFleet(t, fleetPolicy, 2)

	t.Run("the first call of each is served at once", func(t *testing.T) {
		for i := range f.envoys {
			start := time.Now()
			if got := send(t, f.at(i), call{tenant: fmt.Sprint("first", i), output: 20}); got[200] != 1 {
				t.Errorf("%s: %v after %s", f.envoys[i].name, got, within(time.Since(start)))
			}
		}
	})
	t.Run("a tree's calls are counted over the fleet", func(t *testing.T) {
		sent := 0
		for i := range 30 {
			sent += send(t, f.at(i), call{tenant: "forest", output: 20, headers: map[string]string{"x-tree": "t1"}})[200]
		}
		if sent != 10 {
			t.Errorf("%d of 10 calls of the tree were sent", sent)
		}
	})
	t.Run("a day's requests are counted over the fleet", func(t *testing.T) {
		got := map[string]int{}
		for i := range 60 {
			resp, err := http.DefaultClient.Do(call{tenant: "day", output: 5}.request(f.at(i)))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			got[resp.Status+resp.Header.Get("x-weir-reason")]++
		}
		if sent := got["200 OK"]; sent < 23 || sent > 25 {
			t.Errorf("%d of 25 calls of the day were sent: %v", sent, got)
		}
	})
	t.Run("a minute's tokens, with demand that moves", func(t *testing.T) {
		const length = 75 * time.Second
		deadline := time.Now().Add(length)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 2))
				for n := 0; time.Now().Before(deadline); n++ {
					at := i
					if time.Until(deadline) < length/2 && i%4 != 0 { // from then on three quarters come to one
						at = 1
					}
					send(t, f.at(at), call{tenant: "busy", output: 20 + r.IntN(80)})
					time.Sleep(time.Duration(r.IntN(120)) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		most := f.most("busy", time.Minute, tokensOf)
		t.Logf("%d of 12000 tokens in the fullest minute", most)
		if most > 12_000 || most < 10_800 {
			t.Errorf("%d of 12000 tokens in the fullest minute", most)
		}
	})
	t.Run("ten requests a minute over the fleet", func(t *testing.T) {
		f.fewRequests(t)
	})
}

// fewRequests has both Envoys ask for a limit of ten requests a minute, for two minutes.
func (f *fleet) fewRequests(t *testing.T) {
	deadline := time.Now().Add(125 * time.Second)
	sent := 0
	for i := 0; time.Now().Before(deadline); i++ {
		c := call{tenant: "few", output: 5}
		r := c.request(f.at(i))
		body := strings.NewReader(`{"model":"small","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`)
		r.Body, r.ContentLength = io.NopCloser(body), int64(body.Len())
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == 200 {
			sent++
		}
		time.Sleep(200 * time.Millisecond)
	}
	most := f.most("few", time.Minute, oneCall)
	t.Logf("%d sent in 125 s, %d in the fullest minute", sent, most)
	if most > 10 || sent < 20 {
		t.Errorf("%d sent in 125 s, %d in the fullest minute, the limit is 10", sent, most)
	}
}
