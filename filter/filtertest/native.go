// SPDX-License-Identifier: Apache-2.0

package filtertest

import (
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/filter"
)

// native runs the filter's Go code.
type native struct {
	worker *Worker
	vm     *filter.VM
	plugin *filter.Plugin

	attempts *filter.Plugin
}

func newNative(w *Worker) *native { return &native{worker: w, vm: filter.NewVM(nativeHost{w})} }

func (n *native) configure(policy []byte) (err error) {
	p, err := n.vm.Configure(1, policy)
	if err == nil {
		n.plugin = p
	}
	return err
}

func (n *native) configureAttempts() (err error) {
	n.attempts, err = n.vm.Configure(2, []byte(filter.AttemptConfig))
	return err
}

func (n *native) attempt(x *Exchange) attemptCallbacks {
	a := n.attempts.NewAttempt(n.worker.name(x))
	return nativeAttempt{&a}
}

type nativeAttempt struct{ a *filter.Attempt }

func (c nativeAttempt) requestHeaders(int) bool { return c.a.RequestHeaders() != filter.Continue }
func (c nativeAttempt) requestBody(int, bool) bool {
	return c.a.RequestBody() != filter.Continue
}
func (c nativeAttempt) responseHeaders(int) bool { return c.a.ResponseHeaders() != filter.Continue }
func (c nativeAttempt) done()                    {}

func (n *native) tick() {
	if n.plugin != nil {
		n.vm.Tick(n.plugin)
	}
}

func (n *native) close() {}

func (n *native) open(x *Exchange) callbacks {
	return nativeStream{n.plugin.NewStream(n.worker.name(x))}
}

type nativeStream struct{ s *filter.Stream }

func (c nativeStream) requestHeaders(_ int, end bool) bool {
	return c.s.RequestHeaders(end) != filter.Continue
}
func (c nativeStream) requestBody(size int, end bool) filter.Action {
	return c.s.RequestBody(size, end)
}
func (c nativeStream) requestTrailers(int) bool { return c.s.RequestTrailers() != filter.Continue }
func (c nativeStream) responseHeaders(_ int, end bool) bool {
	return c.s.ResponseHeaders(end) != filter.Continue
}
func (c nativeStream) responseBody(size int, end bool) bool {
	return c.s.ResponseBody(size, end) != filter.Continue
}
func (c nativeStream) responseTrailers(int) bool { return c.s.ResponseTrailers() != filter.Continue }
func (c nativeStream) done()                     { c.s.Done() }

// nativeHost is the host of one worker.
type nativeHost struct{ w *Worker }

func (h nativeHost) Now() int64  { return h.w.process.Clock }
func (h nativeHost) Wall() int64 { return h.w.process.Wall.UnixNano() }

func (h nativeHost) Get(key string) ([]byte, uint32, bool) {
	h.w.process.check("get_shared_data")
	value, cas, ok := h.w.process.Store.Get(key)
	return h.w.lend(value), cas, ok
}

func (h nativeHost) Set(key string, value []byte, cas uint32) bool {
	h.w.process.check("set_shared_data")
	return h.w.process.Store.Set(key, value, cas)
}

func (h nativeHost) RequestHeaders(to [][2]string) [][2]string {
	h.w.process.check("request_headers")
	to = to[:0]
	for _, kv := range h.w.current.Headers {
		to = append(to, [2]string{h.w.current.own(kv[0]), h.w.current.own(kv[1])})
	}
	return to
}

func (h nativeHost) SetRequestHeader(name, value string) {
	h.w.current.setRequest(strings.Clone(name), strings.Clone(value))
}
func (h nativeHost) RemoveRequestHeader(name string) { h.w.current.removeRequest(name) }

func (h nativeHost) RequestBody(from, size int) []byte {
	h.w.process.check("request_body")
	return h.w.lend(h.w.current.readBody(from, size))
}

func (h nativeHost) SetRequestBody(b []byte) { h.w.current.buffer = slices.Clone(b) }

func (h nativeHost) SetResponseBody(b []byte) { h.w.current.chunk = slices.Clone(b) }

func (h nativeHost) ResponseHeaders() [][2]string {
	h.w.process.check("response_headers")
	answer := slices.Clone(h.w.current.answer)
	for i, a := range answer {
		answer[i] = [2]string{h.w.lendString(a[0]), h.w.lendString(a[1])}
	}
	return answer
}

func (h nativeHost) ResponseHeader(name string) string {
	h.w.process.check("response_header")
	return h.w.lendString(valueOf(h.w.current.answer, name))
}

func (h nativeHost) SetResponseHeader(name, value string) {
	h.w.current.setResponse(strings.Clone(name), strings.Clone(value))
}

func (h nativeHost) Random(to []byte) bool {
	h.w.process.check("random")
	_, err := rand.Read(to)
	return err == nil
}

func (h nativeHost) RemoveResponseHeader(name string) { h.w.current.removeResponse(name) }

func (h nativeHost) ResponseBody(size int) []byte {
	h.w.process.check("response_body")
	return h.w.lend(h.w.current.chunk[:min(size, len(h.w.current.chunk))])
}

func (h nativeHost) Enter(stream uint32)   { h.w.enter(stream) }
func (h nativeHost) Resume()               { h.w.current.pass(false) }
func (h nativeHost) SetTick(time.Duration) {}

func (h nativeHost) Post(_, path, _ string, body []byte, timeout time.Duration, answer func(status int, body []byte)) bool {
	h.w.post(path, slices.Clone(body), timeout, func(status int, b []byte) { answer(status, h.w.lend(b)) })
	return true
}

func (h nativeHost) Property(path string) string { return h.w.lendString(h.w.property(path)) }

func (h nativeHost) SetProperty(name, value string) {
	h.w.current.setProperty(name, strings.Clone(value))
}

func (h nativeHost) Reply(status int, headers [][2]string, body []byte) {
	h.w.process.check("reply")
	h.w.current.reply(status, headers, body)
}

func (h nativeHost) Add(m *filter.Metric, n int64) {
	h.w.process.check("count")
	h.w.process.Metrics[m.Name] += int(n)
}

func (h nativeHost) Log(_ filter.Level, message string) {
	h.w.process.Logs = append(h.w.process.Logs, message)
}

// VM is the filter's own, to look into; nil of compiled wasm.
func (w *Worker) VM() *filter.VM {
	if n, ok := w.vm.(*native); ok {
		return n.vm
	}
	return nil
}
