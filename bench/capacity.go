// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tierLimits are the tiers of limits, each policy of the capacity model with one more than the one before it. The first has
// the provider's limits alone: requests and tokens.
var tierLimits = []string{
	"  tenant: {default: {tpm: 1_000_000_000_000}}\n", "  user: {default: {tpm: 1_000_000_000_000}}\n",
	"  environment: {production: {tpm: 1_000_000_000_000}}\n", "  tool: {default: {tpm: 1_000_000_000_000}}\n",
}

// capacity measures what the capacity model is fitted to.
func (b *bench) capacity(ctx context.Context) error {
	if err := b.startProvider(); err != nil {
		return err
	}
	for _, measure := range []func(context.Context) error{b.tierCosts, b.keyCosts, b.fleetCosts, b.pushCosts} {
		if err := measure(ctx); err != nil {
			return err
		}
		b.close() // what is measured next is not to share the machine with it
		b.processes = nil
		b.peers = nil
		fmt.Fprintln(os.Stderr, "a part of the model is measured")
		if err := b.startProvider(); err != nil {
			return err
		}
	}
	return nil
}

// tierCosts measures the processor time that Envoy takes for a request, by the number of tiers.
func (b *bench) tierCosts(ctx context.Context) error {
	if err := b.startEnvoy("plain Envoy", "", nil, nil, nil); err != nil {
		return err
	}
	for n := range len(tierLimits) + 1 {
		limits := strings.Join(tierLimits[:n], "")
		if n == 0 {
			limits = "  {}\n"
		}
		file, err := b.write(fmt.Sprintf("tiers%d.yaml", n), b.policy(limits))
		if err != nil {
			return err
		}
		p, err := b.runWeir(fmt.Sprintf("%d tiers", n+1), file)
		if err != nil {
			return err
		}
		p.parts = p.parts[:1] // Envoy alone
		b.peers = append(b.peers, p)
	}
	if err := b.ready(ctx); err != nil {
		return err
	}
	rounds, length := 7, 1500*time.Millisecond
	if b.short {
		rounds, length = 1, 200*time.Millisecond
	}
	loads, err := b.turns(ctx, rounds, length, 0)
	if err == nil {
		b.report.tierCosts(b.peers, loads)
	}
	return err
}

// keyCosts measures what users take of memory: in Envoy, where each has a record, and in the control plane.
func (b *bench) keyCosts(ctx context.Context) error {
	var all []keyRun
	for _, s := range []struct {
		scope string
		step  int
	}{{"node", 4000}, {"fleet", 500}} { // users of scope fleet are asked for one by one
		r, err := b.keyRun(ctx, s.scope, map[bool]int{false: s.step, true: 20}[b.short])
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	b.report.keyCosts(all)
	return nil
}

// A keyRun is what more and more users of one scope take.
type keyRun struct {
	scope                  string
	users, envoy, control  []float64 // bytes
	first, perSecond, took float64   // calls a second of a user that is known, and of users that are not
}

func (b *bench) keyRun(ctx context.Context, scope string, step int) (r keyRun, err error) {
	r.scope = scope
	file, err := b.write("keys-"+scope+".yaml", b.policy("  user: {default: {tpm: 10_000, scope: "+scope+"}}\n")+"slots: {user: 262_144}\n")
	if err != nil {
		return r, err
	}
	p, err := b.runWeir("keys, scope "+scope, file)
	if err != nil {
		return r, err
	}
	b.peers = []*peer{p}
	if err := b.ready(ctx); err != nil {
		return r, err
	}
	// What a first load takes for ever is not the keys'.
	started := time.Now()
	if err := b.manyUsers(ctx, p, 0, 1, step); err != nil {
		return r, err
	}
	r.first = float64(step) / time.Since(started).Seconds()
	for n := 0; ; n += step {
		r.users = append(r.users, float64(n))
		r.envoy, r.control = append(r.envoy, float64(usageOf(p.parts[:1]).memory)), append(r.control, float64(usageOf(p.parts[1:]).memory))
		if n == 4*step {
			break
		}
		started := time.Now()
		if err := b.manyUsers(ctx, p, n, n+step, step); err != nil {
			return r, err
		}
		r.took += time.Since(started).Seconds()
		time.Sleep(2 * time.Second) // two reports
	}
	r.perSecond = r.users[4] / r.took
	for _, part := range p.parts {
		if err := part.stop(); err != nil {
			return r, err
		}
	}
	return r, nil
}

// manyUsers makes calls by users with these numbers.
func (b *bench) manyUsers(ctx context.Context, p *peer, from, to, calls int) error {
	client := newClient(16)
	defer client.CloseIdleConnections()
	body := chat(script{tag: "perf", prompt: 10, completion: 10}, 10, false, "hello")
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for w := range 16 {
		all.Go(func() {
			for i := w; i < calls && ctx.Err() == nil; i += 16 {
				user := from + i%(to-from)
				a, err := send(ctx, client, p.addr, userCall(user, body))
				if err == nil && a.status != http.StatusOK && a.status != http.StatusTooManyRequests {
					err = fmt.Errorf("%s answered %d %s", p.name, a.status, a.body)
				}
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	return failed
}

// A fleetRun is what weir bench fleet says of a fleet.
type fleetRun struct {
	nodes, tenants                                            int
	cores, memory, reports, pushed, cutP50, cutP99, notInTime float64
}

var number = regexp.MustCompile(`^[0-9.]+`)

func (b *bench) fleetCosts(ctx context.Context) error {
	sizes := [][2]int{{100, 1}, {300, 1}, {1000, 1}, {100, 10}, {100, 40}}
	if b.short {
		sizes = [][2]int{{5, 1}, {10, 1}, {5, 4}}
	}
	var runs []fleetRun
	for _, s := range sizes {
		fmt.Fprintf(os.Stderr, "a fleet of %d, %d tenants each …\n", s[0], s[1])
		out, err := exec.CommandContext(ctx, filepath.Join(b.root, "bin/weir"), "bench", "fleet", "--nodes", strconv.Itoa(s[0]), "--tenants", strconv.Itoa(s[1]), "--steady", map[bool]string{false: "8s", true: "2s"}[b.short], "--cuts", "1").Output()
		if err != nil {
			fmt.Fprintf(os.Stderr, "%d Envoys with %d tenants: %v: %s\n", s[0], s[1], err, out)
			continue // this machine is too small for it; the table says which there are
		}
		runs = append(runs, parseFleetRun(s[0], s[1], string(out)))
	}
	if len(runs) < 3 {
		return errors.New("too few runs of weir bench fleet have succeeded to fit anything")
	}
	b.report.fleetCosts(runs)
	return nil
}

func parseFleetRun(nodes, tenants int, out string) fleetRun {
	r := fleetRun{nodes: nodes, tenants: tenants}
	for line := range strings.Lines(out) {
		f := strings.Split(line, "|")
		if len(f) < 3 {
			if rest, found := strings.CutPrefix(line, "Not within 15 s: "); found {
				r.notInTime, _ = strconv.ParseFloat(number.FindString(rest), 64)
			}
			continue
		}
		value, _ := strconv.ParseFloat(number.FindString(strings.TrimSpace(f[2])), 64)
		for name, to := range map[string]*float64{"cores of": &r.cores, "memory": &r.memory, "reports": &r.reports, "bytes of shares": &r.pushed} {
			if strings.HasPrefix(strings.TrimSpace(f[1]), name) {
				*to = value
			}
		}
		if strings.HasPrefix(strings.TrimSpace(f[1]), "from when the control plane") {
			p50, _ := time.ParseDuration(strings.TrimSpace(f[2]))
			p99, _ := time.ParseDuration(strings.TrimSpace(f[3]))
			r.cutP50, r.cutP99 = float64(p50.Milliseconds()), float64(p99.Milliseconds())
		}
	}
	return r
}

// line fits y = a + b x by least squares, and says how far the worst point is from it.
func line(x, y []float64) (a, slope, worst float64) {
	n, sx, sy, sxx, sxy := float64(len(x)), 0.0, 0.0, 0.0, 0.0
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	slope = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	a = (sy - slope*sx) / n
	for i := range x {
		worst = max(worst, y[i]-a-slope*x[i], a+slope*x[i]-y[i])
	}
	return a, slope, worst
}

func column(runs []fleetRun, only func(fleetRun) bool, of func(fleetRun) float64) (x []float64) {
	for _, r := range runs {
		if only(r) {
			x = append(x, of(r))
		}
	}
	return slices.Clip(x)
}
