// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
	"github.com/weirproxy/weir/policy"
)

// A caseWorld is an Envoy in which a case runs, and what is seen of it.
type caseWorld struct {
	c       *fieldCase
	module  *filtertest.Module // nil: the filter's Go code itself
	process *filtertest.Process
	policy  *policy.Policy
	ledger  *policy.Ledger // of another worker, which only looks, or uses up what a case says is used up
	began   int64
	calls   map[string]*caseCall
	order   []*caseCall
	memory  int64 // of the first VM before anything came

	estimated bool // what is expected of an estimate was compared

	problems *[]string // what is wrong with weir
	unknown  *[]string // what is not understood of the case
}

// A caseCall is one request of a case.
type caseCall struct {
	id      string
	at      float64
	request *caseRequest
	body    *caseBody
	x       *filtertest.Exchange
	worker  *filtertest.Worker

	started    [][2]string // headers of the answer, as its first callback left them
	status     int
	answeredAt float64
	kind       string   // content type of the answer
	encoding   string   // and its content-encoding
	answer     [][]byte // pieces that came
	left       usedUp   // of the tenant's limits when the call had ended
	finished   bool
	waited     bool // it was held when its request was complete
	sentAt     float64
}

// caseStart is when cases begin. Headers in them tell times of that day.
var caseStart = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// newCaseWorld starts an Envoy with two workers and the case's policy.
func newCaseWorld(c *fieldCase, m *filtertest.Module, tiers []caseTier, path string, measure caseMeasure) (*caseWorld, error) {
	config, err := policyOf(tiers, path, measure, c.Input.ConfigVariant)
	if err != nil {
		return nil, err
	}
	w := &caseWorld{c: c, module: m, calls: map[string]*caseCall{}, problems: new([]string), unknown: new([]string)}
	if w.process, err = filtertest.NewProcess(m, 2); err != nil {
		return nil, err
	}
	w.process.Wall, w.began = caseStart, w.process.Clock
	if err := w.process.Configure(config); err != nil {
		return nil, err
	}
	spec, err := policy.Decode(config)
	if err != nil {
		return nil, err
	}
	if w.policy, err = policy.Compile(spec); err != nil {
		return nil, err
	}
	w.policy.Since = w.began
	w.ledger = policy.NewLedger(w.process.Store, 77)
	w.memory = w.process.Worker(0).Memory()
	for i := range tiers {
		w.exhaustZeros(&tiers[i])
	}
	return w, nil
}

func (w *caseWorld) wrong(format string, a ...any) {
	*w.problems = append(*w.problems, fmt.Sprintf(format, a...))
}

func (w *caseWorld) notKnown(format string, a ...any) {
	*w.unknown = append(*w.unknown, fmt.Sprintf(format, a...))
}

// now is the time in the case's seconds.
func (w *caseWorld) now() float64 { return float64(w.process.Clock-w.began) / 1e9 }

// sleepTo moves the clock to a time of the case.
func (w *caseWorld) sleepTo(at float64) {
	if d := w.began + int64(at*1e9+0.5) - w.process.Clock; d > 0 {
		w.process.Sleep(time.Duration(d))
	}
}

// open sends a request.
func (w *caseWorld) open(id string, r *caseRequest, worker int) *caseCall {
	c := &caseCall{id: id, at: w.now(), request: r, worker: w.process.Worker(worker)}
	b, err := r.body()
	if err != nil {
		w.notKnown("%v", err)
	}
	headers := [][2]string{{caseIDHeader, callName(id)}}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		headers = append(headers, [2]string{strings.ToLower(name), r.Headers[name]})
	}
	c.body = b
	c.x = r.send(c.worker, b, headers)
	c.waited, c.sentAt = c.became() == callWaits, c.at
	w.calls[id] = c
	w.order = append(w.order, c)
	return c
}

func callName(id string) string { return "call-" + id }

// respondHeaders sends the headers of an answer.
func (w *caseWorld) respondHeaders(c *caseCall, status int, headers map[string]string, end bool) {
	if !c.x.Sent || c.finished {
		return
	}
	var list [][2]string
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		list = append(list, [2]string{strings.ToLower(name), headers[name]})
		switch strings.ToLower(name) {
		case "content-type":
			c.kind = headers[name]
		case "content-encoding":
			c.encoding = headers[name]
		}
	}
	c.status, c.answeredAt = cmp.Or(status, 200), w.now()
	c.x.Respond(c.status, end, list...)
	c.started = slices.Clone(c.x.AnswerHeaders())
	if end {
		w.finish(c)
	}
}

// respondBody sends a piece of an answer.
func (w *caseWorld) respondBody(c *caseCall, piece []byte, end bool) {
	if !c.x.Sent || c.finished {
		return
	}
	if c.status == 0 {
		w.respondHeaders(c, 200, nil, false)
	}
	c.answer = append(c.answer, slices.Clone(piece))
	c.x.Chunk(slices.Clone(piece), end)
	if end {
		w.finish(c)
	}
}

// finish ends a call, however it came to its end.
func (w *caseWorld) finish(c *caseCall) {
	c.x.Close()
	if !c.finished {
		c.finished = true
		if w.c.expectsAfter(c.id) {
			w.process.Sleep(40 * time.Millisecond) // what is settled is written at the next tick
			c.left = w.used(policy.TierTenant, caseKeys{})
		}
	}
}

// close frees what the world holds.
func (w *caseWorld) close() { w.process.Close() }
