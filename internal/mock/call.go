// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"errors"
	"net/http"
	"sync"
)

// call is one request on its way through the mock.
type call struct {
	server   *Server
	w        http.ResponseWriter
	r        *http.Request
	ep       *endpoint
	settings *settings
	seq      uint64
	over     overrides
	in, out  text // hold the request's body and the answer
	req      request
	model    string
	usage    Usage
	input    int64
	output   int64 // what it is going to use
	fate     fate
	cutShort bool // the request's body did not arrive whole
	event    Event
	entry    entry
	ticket   ticket
	finished bool
}

// keepCap bounds the buffers that a pooled call keeps, or one large request would
// pin its memory for good.
const keepCap = 256 << 10

var calls = sync.Pool{New: func() any {
	return &call{in: make([]byte, 0, 4096), out: make([]byte, 0, 4096)}
}}

func newCall(s *Server, w http.ResponseWriter, r *http.Request, ep *endpoint) *call {
	c := calls.Get().(*call)
	c.server, c.w, c.r, c.ep = s, w, r, ep
	c.settings, c.seq = s.settings.Load(), s.seq.Add(1)
	c.over.clear()
	c.event = Event{
		Seq: c.seq, Method: r.Method, Path: r.URL.Path, Proto: r.Proto,
		Key: s.masked.get(callerKey(r.Header)), ContentLength: r.ContentLength,
	}
	if s.ledger.keep > 0 {
		c.event.noteHeaders(r.Header, s.lower)
	}
	c.requestID()
	return c
}

func (c *call) free() {
	if cap(c.in) > keepCap || cap(c.out) > keepCap {
		return
	}
	*c = call{in: c.in[:0], out: c.out[:0]}
	calls.Put(c)
}

// requestID is under another name with each provider.
func (c *call) requestID() {
	name := "X-Request-Id"
	if c.ep.family == familyAnthropic {
		name = "Request-Id"
	}
	id := text(make([]byte, 0, 24)).ident("req_", int64(c.seq))
	c.w.Header()[name] = []string{string(id[1 : len(id)-1])}
}

// serve runs the call: read, decide, answer.
func (c *call) serve() {
	if f := c.read(); f.status != 0 {
		c.fail(f)
		return
	}
	c.fate = c.server.fate(c.settings, &c.over)
	if c.fate.cut == cutHeaders || c.fate.status != 0 {
		c.failOnCommand()
		return
	}
	if !c.ep.metered {
		c.event.Outcome, c.event.At = Free, c.server.now()
		c.open(http.StatusOK)
		c.answer()
		return
	}
	v := c.server.limiter(c.model, c.event.Key).take(c.server.now, c.settings.limits, c.event.Reserved)
	c.event.At = v.at
	limitHeaders(c.w.Header(), c.ep.family, v)
	if !v.ok {
		c.refuse(v)
		return
	}
	c.event.Outcome, c.event.Input, c.ticket = Admitted, c.input, v.ticket
	c.open(http.StatusOK)
	c.answer()
}

func (c *call) open(status int) {
	c.event.Status = status
	c.entry = c.server.ledger.open(&c.event)
}

// finish settles and closes. It comes just before the last bytes leave: a caller
// that has the whole answer must find it in the ledger. When those bytes then
// fail to leave, a second finish adds that the call was aborted.
func (c *call) finish(output int64, aborted bool) {
	if !c.finished {
		c.finished = true
		c.ticket.settle(c.server.now, c.server.settings.Load().limits, c.input+output)
	}
	c.server.ledger.close(&c.entry, c.server.now(), output, aborted)
}

// answer sends the answer and settles, however it ends.
func (c *call) answer() {
	used, err := c.send()
	if !c.finished || err != nil {
		c.finish(used, err != nil)
	}
	if errors.Is(err, errCut) {
		panic(http.ErrAbortHandler)
	}
}
