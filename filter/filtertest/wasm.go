// SPDX-License-Identifier: Apache-2.0

package filtertest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/weirproxy/weir/filter"
)

// A Module is the compiled filter.
type Module struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	started  int
	workers  map[string]*Worker // by module instance
}

// Compile reads and compiles a wasm file.
func Compile(file string) (*Module, error) { return compile(context.Background(), file) }

// Trace is Compile for a file with the names of functions: called is told each that is called.
func Trace(file string, called func(name string)) (*Module, error) {
	listen := experimental.FunctionListenerFactoryFunc(func(f api.FunctionDefinition) experimental.FunctionListener {
		return experimental.FunctionListenerFunc(func(context.Context, api.Module, api.FunctionDefinition, []uint64, experimental.StackIterator) {
			called(f.Name())
		})
	})
	return compile(experimental.WithFunctionListenerFactory(context.Background(), listen), file)
}

func compile(ctx context.Context, file string) (*Module, error) {
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("no compiled filter: %w", err)
	}
	m := &Module{runtime: wazero.NewRuntime(ctx), workers: map[string]*Worker{}}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, m.runtime); err != nil {
		return nil, err
	}
	if err := m.defineHost(ctx); err != nil {
		return nil, err
	}
	m.compiled, err = m.runtime.CompileModule(ctx, code)
	return m, err
}

// Contexts of a VM: one plugin context for each configuration, then one for each stream. Envoy would also call proxy_on_vm_start
// and proxy_on_done, which the filter does not export.
type wasmVM struct {
	module  api.Module
	worker  *Worker
	plugins uint64 // context of the newest

	attempts uint64 // context of the filter in the cluster
	next     uint64
	config   []byte
	posts    uint64
	roots    map[uint64]uint64 // plugin contexts of all contexts
	active   uint64            // the context whose callback is running

	lends uint32      // where the memory that it lends begins
	lent  [][2]uint32 // address and size of what was, in this callback
}

// takeBack spoils what was lent. The filter has to have cleared it before: what it is must not show in another callback.
func (v *wasmVM) takeBack() {
	for i, at := range v.lent {
		if i == 0 && at[1] <= mostLent {
			v.lends = at[0]
		}
		if v.lends == 0 || at[0] < v.lends || at[0]+at[1] > v.lends+mostLent {
			continue
		}
		b, _ := v.module.Memory().Read(at[0], at[1])
		if len(bytes.Trim(b, "\x00")) > 0 {
			panic("what was lent for a callback is still there after it")
		}
		spoil(b)
	}
	v.lent = nil
}

func (m *Module) start(w *Worker) (*wasmVM, error) {
	m.started++
	name := fmt.Sprint("vm", m.started)
	m.workers[name] = w
	p := w.process
	ctx := context.Background()
	mod, err := m.runtime.InstantiateModule(ctx, m.compiled, wazero.NewModuleConfig().WithName(name).
		WithStartFunctions("_initialize").WithStderr(os.Stderr).WithRandSource(randomSource()).
		WithNanotime(func() int64 { return p.Clock }, 1).
		WithWalltime(func() (int64, int32) { return p.Wall.Unix(), int32(p.Wall.Nanosecond()) }, 1))
	if err != nil {
		return nil, err
	}
	return &wasmVM{module: mod, worker: w, next: 1, roots: map[uint64]uint64{}}, nil
}

func randomSource() io.Reader {
	f, err := os.Open("/dev/urandom")
	if err != nil {
		panic(err)
	}
	return f
}

func (v *wasmVM) call(name string, args ...uint64) uint64 {
	v.active = args[0]
	r, err := v.module.ExportedFunction(name).Call(context.Background(), args...)
	if err != nil {
		v.worker.Dead = true
		panic(fmt.Sprintf("the VM trapped in %s: %v", name, err))
	}
	if len(r) == 0 {
		return 0
	}
	return r[0]
}

func (v *wasmVM) newContext(parent uint64) uint64 {
	id := v.next
	v.next++
	v.roots[id] = cmp.Or(parent, id)
	v.call("proxy_on_context_create", id, parent)
	return id
}

func (v *wasmVM) configure(policy []byte) error {
	id := v.newContext(0)
	v.config = policy
	if v.call("proxy_on_configure", id, uint64(len(policy))) == 0 {
		return fmt.Errorf("the filter refuses the policy: %v", v.worker.process.Logs)
	}
	v.plugins = id
	return nil
}

func (v *wasmVM) configureAttempts() (err error) {
	v.attempts, err = v.start([]byte(`{"role":"attempt"}`))
	return err
}

// start starts another plugin beside the one that limits.
func (v *wasmVM) start(config []byte) (id uint64, err error) {
	id = v.newContext(0)
	policy := v.config
	defer func() { v.config = policy }()
	v.config = config
	if v.call("proxy_on_configure", id, uint64(len(v.config))) == 0 {
		return 0, fmt.Errorf("the filter refuses it: %v", v.worker.process.Logs)
	}
	return id, nil
}

func (v *wasmVM) attempt(x *Exchange) attemptCallbacks {
	id := v.newContext(v.attempts)
	v.worker.known(uint32(id), x)
	return wasmAttempt{wasmStream{v, id}}
}

type wasmAttempt struct{ s wasmStream }

func (a wasmAttempt) requestHeaders(n int) bool { return a.s.requestHeaders(n, false) }
func (a wasmAttempt) requestBody(n int, end bool) bool {
	return a.s.requestBody(n, end) != filter.Continue
}
func (a wasmAttempt) responseHeaders(n int) bool { return a.s.responseHeaders(n, false) }
func (a wasmAttempt) done()                      { a.s.v.call("proxy_on_delete", a.s.id) }

func (v *wasmVM) tick() { v.call("proxy_on_tick", v.plugins) }

func (v *wasmVM) close() { _ = v.module.Close(context.Background()) }

func (v *wasmVM) open(x *Exchange) callbacks {
	id := v.newContext(v.plugins)
	v.worker.known(uint32(id), x)
	return wasmStream{v, id}
}

type wasmStream struct {
	v  *wasmVM
	id uint64
}

func flag(end bool) uint64 {
	if end {
		return 1
	}
	return 0
}

func (s wasmStream) requestHeaders(n int, end bool) bool {
	return s.v.call("proxy_on_request_headers", s.id, uint64(n), flag(end)) != 0
}

func (s wasmStream) requestBody(size int, end bool) filter.Action {
	return filter.Action(s.v.call("proxy_on_request_body", s.id, uint64(size), flag(end)))
}

func (s wasmStream) requestTrailers(n int) bool {
	return s.v.call("proxy_on_request_trailers", s.id, uint64(n)) != 0
}

func (s wasmStream) responseHeaders(n int, end bool) bool {
	return s.v.call("proxy_on_response_headers", s.id, uint64(n), flag(end)) != 0
}

func (s wasmStream) responseBody(size int, end bool) bool {
	return s.v.call("proxy_on_response_body", s.id, uint64(size), flag(end)) != 0
}

func (s wasmStream) responseTrailers(n int) bool {
	return s.v.call("proxy_on_response_trailers", s.id, uint64(n)) != 0
}

func (s wasmStream) done() {
	s.v.call("proxy_on_log", s.id)
	s.v.call("proxy_on_delete", s.id)
}

// Stray makes calls of compiled wasm that Envoy has no reason for: about contexts that there are not, or not any more, and an answer
// to no call.
func (w *Worker) Stray() {
	v, ok := w.vm.(*wasmVM)
	if !ok {
		return
	}
	gone := v.newContext(v.plugins)
	v.worker.known(uint32(gone), &Exchange{worker: w})
	w.enter(uint32(gone))
	v.call("proxy_on_delete", gone)
	for _, id := range []uint64{gone, 1 << 31} {
		v.call("proxy_on_request_headers", id, 1, 1)
		w.current.Reply = nil
		v.call("proxy_on_request_body", id, 0, 1)
		v.call("proxy_on_request_trailers", id, 0)
		v.call("proxy_on_response_headers", id, 1, 1)
		v.call("proxy_on_response_body", id, 0, 1)
		v.call("proxy_on_response_trailers", id, 0)
		v.call("proxy_on_log", id)
		v.call("proxy_on_delete", id)
		v.call("proxy_on_tick", id)
		v.call("proxy_on_http_call_response", id, 7, 0, 0, 0)
	}
	v.call("proxy_on_http_call_response", v.plugins, 7, 0, 0, 0)
}
