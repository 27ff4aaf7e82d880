// SPDX-License-Identifier: Apache-2.0

package filtertest

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"unsafe"

	"github.com/weirproxy/weir/filter"
)

// A Request is what a caller sends.
type Request struct {
	Method     string // POST if empty
	Path       string
	Headers    [][2]string
	Body       []byte
	Chunks     [][]byte          // the body in pieces, instead of Body
	Trailers   bool              // the body ends with trailers
	Properties map[string]string // of Envoy, by their path joined with dots
	Forget     bool              // do not keep the body as it leaves: it is too long
}

// A Reply is an answer that the filter gave itself.
type Reply struct {
	Status  int
	Headers http.Header
	Body    string
}

// An Exchange is one stream.
type Exchange struct {
	Sent     bool        // the request has left
	Headers  [][2]string // as they leave
	Body     []byte      // as it leaves
	Reply    *Reply      // if the filter answered
	Received []byte      // of the answer's body, as it reaches the caller
	Buffered int         // the most bytes that were ever held
	Held     bool        // a piece of the answer was held back
	Attempts int         // so far

	worker     *Worker
	request    Request
	callbacks  callbacks
	attempt    attemptCallbacks
	buffer     []byte
	passing    []byte // the piece of the body that the filter sees, where that is not all of the buffer
	heldBack   bool   // it has let no more come than fits, and sees each piece alone
	chunk      []byte // of the answer
	answer     [][2]string
	holding    bool // headers are held
	closed     bool
	properties map[string]string
	state      map[string]string
	owned      [][]byte // what the filter has of the request's headers
}

// Open sends a request through a worker as far as it goes: until it has left, is answered, or is held.
func (w *Worker) Open(r Request) *Exchange {
	x := w.Start(r)
	chunks := r.Chunks
	if chunks == nil && len(r.Body) > 0 {
		chunks = [][]byte{r.Body}
	}
	for i, c := range chunks {
		x.SendBody(c, i == len(chunks)-1 && !r.Trailers)
	}
	if r.Trailers && x.Reply == nil {
		x.run(func() { x.pass(x.callbacks.requestTrailers(1) || x.worker.stop) })
	}
	return x
}

// Start sends the headers of a request only. Without a body in the request they are all there is.
func (w *Worker) Start(r Request) *Exchange {
	if r.Method == "" {
		r.Method = "POST"
	}
	x := &Exchange{worker: w, request: r, properties: r.Properties}
	x.Headers = append([][2]string{{":method", r.Method}, {":path", r.Path}, {":authority", "weir"}, {":scheme", "http"}}, r.Headers...)
	if r.Body != nil && r.Chunks == nil && !has(r.Headers, "content-length") {
		x.Headers = append(x.Headers, [2]string{"content-length", strconv.Itoa(len(r.Body))})
	}
	end := r.Body == nil && r.Chunks == nil
	x.callbacks = w.vm.open(x)
	x.run(func() {
		x.holding = x.callbacks.requestHeaders(len(x.Headers), end) || x.worker.stop
		x.Sent = !x.holding && x.Reply == nil
	})
	return x
}

// valueOf is the first header of a name; empty if there is none.
func valueOf(headers [][2]string, name string) string {
	for _, h := range headers {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

func has(headers [][2]string, name string) bool {
	for _, h := range headers {
		if h[0] == name {
			return true
		}
	}
	return false
}

// SendBody sends a piece of the body. A body whose end is its last trailer never says that it is complete.
func (x *Exchange) SendBody(chunk []byte, end bool) {
	if x.Reply != nil || x.closed {
		return
	}
	x.buffer = append(x.buffer, chunk...)
	x.Buffered = max(x.Buffered, len(x.buffer))
	seen := x.buffer
	if x.heldBack {
		seen, x.passing = chunk, chunk
	}
	x.run(func() {
		a := x.callbacks.requestBody(len(seen), end)
		x.heldBack = a == filter.HoldBack
		x.pass(a != filter.Continue || x.worker.stop)
	})
	x.passing = nil
}

// readBody is what the filter reads of the body.
func (x *Exchange) readBody(from, size int) []byte {
	b := x.buffer
	if x.passing != nil {
		b = x.passing
	}
	from = min(from, len(b))
	return b[from:min(from+size, len(b))]
}

// pass lets what is buffered leave, unless the filter paused.
func (x *Exchange) pass(paused bool) {
	if paused || x.Reply != nil {
		return
	}
	x.holding, x.Sent = false, true
	if !x.request.Forget {
		x.Body = append(x.Body, x.buffer...)
	}
	x.buffer = nil
}

// run runs a callback, and then what Envoy does about a local reply: its headers and body go through the filter, too.
func (x *Exchange) run(callback func()) {
	x.worker.current, x.worker.stop = x, false
	replied := x.Reply
	callback()
	x.worker.takeBack()
	if x.Reply != nil && replied == nil && !x.closed {
		x.answer = [][2]string{{":status", strconv.Itoa(x.Reply.Status)}}
		x.callbacks.responseHeaders(1, len(x.Reply.Body) == 0)
		x.worker.takeBack()
		if len(x.Reply.Body) > 0 {
			x.chunk = []byte(x.Reply.Body)
			x.callbacks.responseBody(len(x.chunk), true)
			x.worker.takeBack()
		}
	}
}

// Respond sends the headers of the provider's answer; end: that is all.
func (x *Exchange) Respond(status int, end bool, headers ...[2]string) {
	x.answer = append([][2]string{{":status", strconv.Itoa(status)}}, headers...)
	x.run(func() { x.Held = x.callbacks.responseHeaders(len(x.answer), end) || x.Held })
}

// Chunk sends a piece of the answer's body and tells whether it was held back.
func (x *Exchange) Chunk(b []byte, end bool) (held bool) {
	x.chunk = b
	x.run(func() { held = x.callbacks.responseBody(len(b), end) })
	x.Held = x.Held || held
	x.Received = append(x.Received, x.chunk...)
	return held
}

// Answer sends a whole JSON answer and ends the stream.
func (x *Exchange) Answer(status int, body string) {
	x.Respond(status, false, [2]string{"content-type", "application/json"})
	x.Chunk([]byte(body), true)
	x.Close()
}

// Trailers ends the answer with trailers.
func (x *Exchange) Trailers() { x.run(func() { x.callbacks.responseTrailers(1) }) }

// AnswerHeaders are those of the answer as they reach the caller.
func (x *Exchange) AnswerHeaders() [][2]string { return x.answer }

// Close ends the stream, as all streams end: after its answer, or when either side has left.
func (x *Exchange) Close() {
	if !x.closed {
		x.closed = true
		x.run(x.callbacks.done)
		for _, b := range x.owned {
			spoil(b)
		}
	}
}

// own gives a string that is the filter's until the stream is done: who uses it then reads nonsense.
func (x *Exchange) own(s string) string {
	b := []byte(s)
	x.owned = append(x.owned, b)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Upstream gives a header as it leaves; "" if there is none.
func (x *Exchange) Upstream(name string) string {
	for _, h := range x.Headers {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

// FilterState gives what the filter left for the access log.
func (x *Exchange) FilterState(name string) string { return x.state[name] }

func (x *Exchange) setProperty(name, value string) {
	if x.state == nil {
		x.state = map[string]string{}
	}
	x.state[name] = value
}

// property reads what Envoy knows, or else what the filter itself has set.
func (x *Exchange) property(path string) string {
	name := strings.ReplaceAll(path, "\x00", ".")
	return cmp.Or(x.properties[name], x.state[name])
}

// property is that of the stream whose callback is running, or of Envoy.
func (w *Worker) property(path string) string {
	switch {
	case path == "xds\x00node\x00id":
		return w.process.Node
	case w.current == nil:
		return ""
	}
	return w.current.property(path)
}

func (x *Exchange) removeRequest(name string) { x.Headers = without(x.Headers, name) }

func (x *Exchange) setRequest(name, value string) {
	x.Headers = append(without(x.Headers, name), [2]string{name, value})
}

func (x *Exchange) setResponse(name, value string) {
	x.answer = append(without(x.answer, name), [2]string{name, value})
}

func (x *Exchange) removeResponse(name string) { x.answer = without(x.answer, name) }

func without(headers [][2]string, name string) (kept [][2]string) {
	for _, h := range headers {
		if h[0] != name {
			kept = append(kept, h)
		}
	}
	return kept
}

func (x *Exchange) reply(status int, headers [][2]string, body []byte) {
	if x.Reply != nil {
		panic("a second local reply")
	}
	x.worker.stop = true // as in Envoy: the stream whose callback is running does not go on
	x.Reply = &Reply{Status: status, Headers: http.Header{}, Body: string(body)}
	for _, h := range headers {
		x.Reply.Headers.Add(strings.Clone(h[0]), strings.Clone(h[1]))
	}
}
