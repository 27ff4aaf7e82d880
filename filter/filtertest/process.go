// SPDX-License-Identifier: Apache-2.0

// Package filtertest is an Envoy for tests of the filter: shared data with Envoy's compare-and-swap rules, a clock that is
// moved by hand, callbacks in Envoy's order. Its workers run the filter's Go code itself or the compiled wasm, so that each
// test runs both ways.
package filtertest

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirproxy/weir/filter"
	"github.com/weirproxy/weir/policy/policytest"
)

// A Process is what all workers of an Envoy share.
type Process struct {
	Store   *policytest.Store
	Clock   int64 // ns, monotonic
	Wall    time.Time
	Metrics map[string]int // as of the last tick
	Logs    []string

	// Fail, if set, is asked before each host call of a name (as "request_headers"); true makes the call panic.
	Fail func(call string) bool

	Ticking int // which worker does, during Sleep

	// Node is what Envoy calls itself. Control answers what the filter posts, at the next tick; nil: nobody is there.
	Node    string
	Control func(path string, body []byte) (status int, answer []byte)
	Posts   int

	// Late, if set, says how long a post takes to get there, and its answer to come back: at 0 both happen at the next tick. What
	// takes longer than its timeout is answered with status 0 then, and may get there all the same.
	Late func(path string) (there, back time.Duration)

	posted []*post // what is to be answered

	workers []*Worker
}

// NewProcess starts an Envoy with so many workers, of the wasm module if that is not nil.
func NewProcess(module *Module, workers int) (*Process, error) {
	p := &Process{
		Store: policytest.NewStore(), Clock: int64(time.Hour), Wall: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC),
		Metrics: map[string]int{},
	}
	for range workers {
		w := &Worker{process: p}
		var err error
		if w.vm, err = newVM(w, module); err != nil {
			return nil, err
		}
		p.workers = append(p.workers, w)
	}
	return p, nil
}

// Close ends the process.
func (p *Process) Close() {
	for _, w := range p.workers {
		w.vm.close()
	}
}

// Worker gives one of the workers.
func (p *Process) Worker(i int) *Worker { return p.workers[i%len(p.workers)] }

// Configure gives all workers a policy, as JSON.
func (p *Process) Configure(policy []byte) error {
	for i, w := range p.workers {
		if err := w.vm.configure(policy); err != nil {
			return fmt.Errorf("worker %d: %w", i, err)
		}
	}
	return nil
}

// Sleep moves the clock, with all ticks that come in the time.
func (p *Process) Sleep(d time.Duration) {
	const tick = 20 * time.Millisecond
	for d > 0 {
		step := min(d, tick)
		p.Clock += int64(step)
		p.Wall = p.Wall.Add(step)
		d -= step
		p.tick()
	}
}

// TakeShares lays a document of a fleet's controller where the workers look for it with their ticks, as the courier does.
func (p *Process) TakeShares(document []byte) {
	p.Store.Set(filter.SharesName, document, 0)
	p.Store.Set(filter.SharesNew, []byte{1}, 0)
}

func (p *Process) tick() {
	p.move()
	for i, w := range p.workers {
		if p.Ticking = i; !w.Dead {
			w.tick()
			w.takeBack()
		}
	}
}

// Metric adds up all counters whose name begins with prefix, a second later: so long may it take until they come.
func (p *Process) Metric(prefix string) (n int) {
	p.Sleep(time.Second)
	for name, v := range p.Metrics {
		if strings.HasPrefix(name, prefix) {
			n += v
		}
	}
	return n
}

func (p *Process) check(call string) {
	if p.Fail != nil && p.Fail(call) {
		panic("host call failed: " + call)
	}
}
