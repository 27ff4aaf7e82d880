// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"sync"
	"time"
)

// limits are both dimensions of the limit in force.
type limits struct {
	rpm, tpm      rate
	window, burst time.Duration
}

// withRates replaces the figures and keeps window and burst.
func (l limits) withRates(rpm, tpm int64) limits {
	l.rpm = newRate(rpm, l.window, l.burst)
	l.tpm = newRate(tpm, l.window, l.burst)
	return l
}

// gauge is what a provider tells about one dimension.
type gauge struct {
	limit, remaining int64
	full             time.Duration
}

// verdict is the answer to one arrival.
type verdict struct {
	at               int64
	window           time.Duration
	ok               bool
	requests, tokens gauge
	denied           string        // the dimension that lacks most: "requests" or "tokens"
	wait             time.Duration // until it would fit; never if it cannot
	used             int64         // of the dimension that denied
	ticket           ticket
}

// ticket names a charge, so that it can be put right.
type ticket struct {
	lim           *limiter
	tokens        int64
	tokID         uint64
	chargedTokens bool
}

// limiter holds the state of one model (and key).
type limiter struct {
	mu       sync.Mutex
	last     int64
	req, tok counter
}

func newLimiter(mode Mode) *limiter {
	if mode == ModeSliding {
		return &limiter{req: &sliding{}, tok: &sliding{}}
	}
	return &limiter{req: &bucket{}, tok: &bucket{}}
}

// tick reads the clock under the lock: entries are then in the order of their
// times, and the time in the ledger is the one the limit was judged by.
func (l *limiter) tick(clock func() int64, lim limits) {
	l.last = max(l.last, clock())
	if lim.rpm.on() {
		l.req.advance(l.last, lim.rpm)
	}
	if lim.tpm.on() {
		l.tok.advance(l.last, lim.tpm)
	}
}

// take charges one request and its tokens on both dimensions, or on neither.
func (l *limiter) take(clock func() int64, lim limits, tokens int64) verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick(clock, lim)
	v := verdict{at: l.last, window: lim.window, ok: true}
	l.judge(&v, "requests", l.req, lim.rpm, 1)
	l.judge(&v, "tokens", l.tok, lim.tpm, tokens)
	if v.ok {
		v.ticket = l.charge(lim, tokens)
	}
	v.requests = l.gauge(l.req, lim.rpm)
	v.tokens = l.gauge(l.tok, lim.tpm)
	return v
}

// judge notes a refusal of one dimension if it asks for the longest wait so far.
func (l *limiter) judge(v *verdict, name string, c counter, r rate, n int64) {
	if !r.on() || n <= c.room(r) {
		return
	}
	wait := c.wait(l.last, r, n)
	if v.ok || wait > v.wait {
		v.denied, v.wait, v.used = name, wait, r.capacity-c.room(r)
	}
	v.ok = false
}

func (l *limiter) charge(lim limits, tokens int64) ticket {
	t := ticket{lim: l, tokens: tokens}
	if lim.rpm.on() {
		l.req.take(l.last, 1)
	}
	if lim.tpm.on() {
		t.tokID = l.tok.take(l.last, tokens)
		t.chargedTokens = true
	}
	return t
}

func (l *limiter) gauge(c counter, r rate) gauge {
	if !r.on() {
		return gauge{}
	}
	return gauge{limit: r.limit, remaining: max(0, c.room(r)), full: c.full(l.last, r)}
}

// settle replaces the reserved tokens of a charge by the actual ones.
func (t ticket) settle(clock func() int64, lim limits, actual int64) {
	if t.lim == nil || !t.chargedTokens || !lim.tpm.on() || actual == t.tokens {
		return
	}
	t.lim.mu.Lock()
	defer t.lim.mu.Unlock()
	t.lim.tick(clock, lim)
	t.lim.tok.settle(t.tokID, lim.tpm, actual-t.tokens)
}
