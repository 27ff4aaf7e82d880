// SPDX-License-Identifier: Apache-2.0

// Package filtertest is an Envoy for tests of the filter: shared data with Envoy's compare-and-swap rules, a clock that is
// moved by hand, callbacks in Envoy's order. Its workers run the filter's Go code itself or the compiled wasm, so that each
// test runs both ways.
package filtertest

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unsafe"

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

func newVM(w *Worker, module *Module) (vm, error) {
	if module == nil {
		return newNative(w), nil
	}
	return module.start(w)
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

// Configure gives one worker a policy, as JSON: Envoy's workers do not get it all at once.
func (w *Worker) Configure(policy []byte) error { return w.vm.configure(policy) }

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

// A post is one that is on its way.
type post struct {
	there, back, timeout int64 // ns of the clock; there is 0 once it is
	take                 func()
	answer               func(status int, body []byte)
	status               int
	body                 []byte
}

// post has the controller answer what a worker's filter has posted.
func (w *Worker) post(path string, body []byte, timeout time.Duration, answer func(status int, body []byte)) {
	p := w.process
	p.Posts++
	o := &post{there: p.Clock, back: p.Clock, timeout: p.Clock + int64(timeout)}
	if p.Late != nil {
		there, back := p.Late(path)
		o.there += int64(there)
		o.back = o.there + int64(back)
	}
	o.take = func() {
		if p.Control != nil {
			o.status, o.body = p.Control(path, body)
		}
	}
	o.answer = func(status int, body []byte) {
		if !w.Dead {
			answer(status, body)
			w.takeBack()
		}
	}
	p.posted = append(p.posted, o)
}

// move brings what is on its way on.
func (p *Process) move() {
	posted := p.posted
	p.posted = nil
	for _, o := range posted {
		if o.there > 0 && o.there <= p.Clock {
			o.there = 0
			o.take()
		}
		switch {
		case o.answer == nil:
		case o.there == 0 && o.back <= p.Clock:
			o.answer(o.status, o.body)
			o.answer = nil
		case o.timeout <= p.Clock:
			o.answer(0, nil)
			o.answer = nil
		}
		if o.there > 0 || o.answer != nil {
			p.posted = append(p.posted, o)
		}
	}
}

func (p *Process) tick() {
	p.move()
	for i, w := range p.workers {
		if p.Ticking = i; !w.Dead {
			w.vm.tick()
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

// A Worker is one of Envoy's threads, with a VM of its own.
type Worker struct {
	Dead bool // its VM has trapped: it ticks no more

	process *Process
	vm      vm
	current *Exchange // whose callback is running, or whom it means
	stop    bool      // a stream has been answered in this callback

	answered struct { // to a post
		status int
		body   []byte
	}
	streams map[uint32]*Exchange
	lent    []byte // what is the filter's for the callback; the next one's is in the same place
}

// Reload gives a worker whose VM has trapped a new one, as Envoy does with the next stream.
func (w *Worker) Reload(policy []byte) error {
	n := newNative(w)
	if err := n.configure(policy); err != nil {
		return err
	}
	w.vm, w.Dead, w.current = n, false, nil
	return nil
}

// firstStream is the id of the first stream where the filter runs natively.
const firstStream = 100

// name gives an exchange an id.
func (w *Worker) name(x *Exchange) uint32 {
	id := uint32(firstStream + len(w.streams))
	w.known(id, x)
	return id
}

func (w *Worker) known(id uint32, x *Exchange) {
	if w.streams == nil {
		w.streams = map[uint32]*Exchange{}
	}
	w.streams[id] = x
}

// enter makes host calls be about a stream; about none, if the id is a plugin's.
func (w *Worker) enter(id uint32) { w.current = w.streams[id] }

// Memory is how many bytes the worker's VM has; 0 if there is none.
func (w *Worker) Memory() int64 {
	if v, ok := w.vm.(*wasmVM); ok {
		return int64(v.module.Memory().Size())
	}
	return 0
}

// mostLent is how much the filter lends itself in a callback, as wasm. What is more is its garbage collector's.
const mostLent = 64 << 10

// lend gives bytes that are the filter's until the callback is over: of a body, of the headers of an answer, or of a value of shared
// data.
func (w *Worker) lend(b []byte) []byte {
	if w.lent == nil {
		w.lent = make([]byte, 0, mostLent)
	}
	start := (len(w.lent) + 7) &^ 7
	end := start + len(b)
	if b == nil || end > mostLent {
		return slices.Clone(b)
	}
	w.lent = w.lent[:end]
	copy(w.lent[start:], b)
	return w.lent[start:end:end]
}

func (w *Worker) lendString(s string) string {
	b := w.lend([]byte(s))
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// takeBack ends that, after each callback: who uses it then reads nonsense, or writes into what another was lent.
func (w *Worker) takeBack() {
	spoil(w.lent)
	w.lent = w.lent[:0]
	if v, ok := w.vm.(*wasmVM); ok {
		v.takeBack()
	}
}

func spoil(b []byte) {
	for i := range b {
		b[i] = 0xa5
	}
}

// A vm runs the filter.
type vm interface {
	configure(policy []byte) error
	configureAttempts() error
	attempt(x *Exchange) attemptCallbacks
	open(x *Exchange) callbacks
	tick()
	close()
}

// callbacks are those of one stream; each says whether it pauses, and that with a body, how.
type callbacks interface {
	requestHeaders(n int, end bool) bool
	requestBody(size int, end bool) filter.Action
	requestTrailers(n int) bool
	responseHeaders(n int, end bool) bool
	responseBody(size int, end bool) bool
	responseTrailers(n int) bool
	done()
}
