// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"net/http"
	"time"
)

// refuse answers for the limits.
func (c *call) refuse(v verdict) {
	c.event.Outcome = Refused
	f := refusal(c.ep.family, v, c.model, c.event.Reserved)
	c.open(f.status)
	retryHeaders(c.w.Header(), v.wait)
	c.reply(f, false)
}

// fail answers what is wrong with the call itself.
func (c *call) fail(f failure) {
	c.event.Outcome, c.event.At = Failed, c.server.now()
	c.open(f.status)
	c.reply(f, c.cutShort)
}

// failOnCommand breaks the connection or answers with the wanted status.
func (c *call) failOnCommand() {
	f := forced(c.fate.status, c.fate.code)
	c.event.Outcome, c.event.At = Failed, c.server.now()
	c.open(f.status)
	here := pause(c.r.Context(), c.fate.delay)
	if c.fate.cut == cutHeaders {
		c.finish(0, true)
		panic(http.ErrAbortHandler)
	}
	if f.status == http.StatusTooManyRequests && !f.terminal() {
		retryHeaders(c.w.Header(), time.Second)
	}
	c.reply(f, !here)
}

func (c *call) reply(f failure, aborted bool) {
	c.finish(0, aborted)
	if c.writeFailure(f) != nil {
		c.finish(0, true)
	}
}

// writeFailure writes a failure in the caller's dialect.
func (c *call) writeFailure(f failure) error {
	h := c.w.Header()
	if c.over.retryAfter != "" {
		h["Retry-After"] = []string{c.over.retryAfter}
		delete(h, "Retry-After-Ms")
	}
	c.out = f.json(c.out[:0], c.ep.family, int64(c.seq))
	return writeJSON(c.w, f.status, c.out)
}
