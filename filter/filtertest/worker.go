// SPDX-License-Identifier: Apache-2.0

package filtertest

import "github.com/weirproxy/weir/filter"

// A Worker is one of Envoy's threads, with a VM of its own.
type Worker struct {
	Dead bool // its VM has trapped: it ticks no more

	process *Process
	vm      vm
	current *Exchange // whose callback is running, or whom it means
	ticks   bool      // a tick is running
	stop    bool      // a stream has been answered in this callback

	answered struct { // to a post
		status int
		body   []byte
	}
	streams map[uint32]*Exchange
	lent    []byte // what is the filter's for the callback; the next one's is in the same place
}

// Configure gives one worker a policy, as JSON: Envoy's workers do not get it all at once.
func (w *Worker) Configure(policy []byte) error { return w.vm.configure(policy) }

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

func (w *Worker) tick() {
	w.ticks, w.current = true, nil
	defer func() { w.ticks = false }()
	w.vm.tick()
}

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

func newVM(w *Worker, module *Module) (vm, error) {
	if module == nil {
		return newNative(w), nil
	}
	return module.start(w)
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
