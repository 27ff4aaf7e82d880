// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weirproxy/weir/policy"
)

// caseOps are the operations of sequences.
var caseOps = map[string]func(w *caseWorld, s *caseStep){
	"request": func(w *caseWorld, s *caseStep) { w.open(s.ID, &s.caseRequest, s.worker) },
	"respond": func(w *caseWorld, s *caseStep) { w.respond(w.call(s.ID), s) },
	"respond_all": func(w *caseWorld, s *caseStep) {
		for _, c := range slices.Clone(w.order) {
			w.respond(c, s)
		}
	},
	"response_headers": func(w *caseWorld, s *caseStep) {
		w.respondHeaders(w.call(s.ID), s.Status, s.Headers, s.End)
	},
	"response_body": func(w *caseWorld, s *caseStep) {
		piece := []byte(s.Chunk)
		if s.ChunkB64 != nil {
			piece = s.ChunkB64
		}
		w.respondBody(w.call(s.ID), piece, s.End)
	},

	// However a stream ends, done, log and delete are called, once each.
	"client_reset":          func(w *caseWorld, s *caseStep) { w.finish(w.call(s.ID)) },
	"upstream_idle_timeout": func(w *caseWorld, s *caseStep) { w.finish(w.call(s.ID)) },
	"stream_done_callback":  func(w *caseWorld, s *caseStep) { w.finish(w.call(s.ID)) },
	"log_callback":          func(w *caseWorld, s *caseStep) { w.finish(w.call(s.ID)) },
	"delete_callback":       func(w *caseWorld, s *caseStep) { w.finish(w.call(s.ID)) },
	"upstream_reset":        upstreamReset,

	// The filter hears nothing of these: retries are below it, and a caller that does not read only holds Envoy up.
	"upstream_attempt_failed": func(*caseWorld, *caseStep) {},
	"client_stops_reading":    func(*caseWorld, *caseStep) {},

	"vm_or_store_error_on_release": failRelease,
	"clock_step":                   func(w *caseWorld, s *caseStep) { w.process.Wall = w.process.Wall.Add(time.Duration(s.DeltaS * 1e9)) },
	"exhaust":                      func(w *caseWorld, _ *caseStep) { w.exhaust() },
	"preset":                       preset,
	"expect_reject":                expectReject,

	// What they ask for is looked at in the end, or when a call ends.
	"inspect":        func(*caseWorld, *caseStep) {},
	"collect_header": func(*caseWorld, *caseStep) {},
	"serve_each_for": func(*caseWorld, *caseStep) {},
}

func init() {
	caseOps["respond_all_with_usage"] = caseOps["respond_all"]
}

// play runs a sequence, in the order of its times.
func (w *caseWorld) play(raw []json.RawMessage) {
	steps, err := unfold(raw, 0)
	if err != nil {
		w.notKnown("%v", err)
		return
	}
	slices.SortStableFunc(steps, func(a, b caseStep) int { return cmp.Compare(a.at, b.at) })
	for i := range steps {
		s := &steps[i]
		op := caseOps[s.Op]
		if op == nil {
			w.notKnown("unknown operation %q", s.Op)
			return
		}
		w.sleepTo(s.at)
		op(w, s)
		w.served(steps, i)
	}
}

// preset uses up tokens, as long ago as they have to be to come back when the case says. Cases mean windows of a minute.
func preset(w *caseWorld, s *caseStep) {
	w.take(policy.Cost{Input: s.UsedTokens})
	if s.WindowResetsAt != nil {
		ago := max(60-(*s.WindowResetsAt-s.at), 0)
		w.began += int64(ago * 1e9) // the case goes on from here
		w.sleepTo(s.at)
	}
}

// served ends calls that an upstream serves for a fixed time each: serve_each_for.
func (w *caseWorld) served(steps []caseStep, done int) {
	i := slices.IndexFunc(steps, func(s caseStep) bool { return s.Op == "serve_each_for" })
	if i < 0 {
		return
	}
	next := w.now() + 60
	if done+1 < len(steps) {
		next = steps[done+1].at
	}
	for w.now() < next {
		for _, c := range w.order {
			if c.x.Sent && !c.finished && w.now() >= c.at+steps[i].Seconds {
				w.respondHeaders(c, 200, nil, true)
			}
		}
		w.sleepTo(min(w.now()+0.1, next))
	}
}

// call is the one with the id.
func (w *caseWorld) call(id string) *caseCall {
	c := w.calls[id]
	if c == nil {
		w.notKnown("no request has the id %q", id)
		panic(fmt.Sprintf("no request %q", id))
	}
	return c
}

// respond sends a whole answer.
func (w *caseWorld) respond(c *caseCall, s *caseStep) {
	b, err := s.body()
	if err != nil {
		w.notKnown("%v", err)
	}
	list, headers := b.list(), s.Headers
	if s.Usage != nil {
		list = [][]byte{fmt.Appendf(nil, `{"choices":[],"usage":%s}`, s.Usage)}
	}
	if headers == nil && len(list) > 0 {
		headers = map[string]string{"content-type": "application/json"}
	}
	w.respondHeaders(c, s.Status, headers, len(list) == 0)
	for i, p := range list {
		w.respondBody(c, p, i == len(list)-1)
	}
}

// upstreamReset: before an answer began Envoy answers with 503 itself, later it only ends the stream.
func upstreamReset(w *caseWorld, s *caseStep) {
	c := w.call(s.ID)
	if c.status == 0 {
		w.respondHeaders(c, 503, map[string]string{"content-type": "text/plain"}, false)
		w.respondBody(c, []byte("upstream connect error or disconnect/reset before headers"), true)
	}
	w.finish(c)
}

// failRelease makes shared data fail while the call ends.
func failRelease(w *caseWorld, s *caseStep) {
	c := w.call(s.ID)
	w.process.Store.Before = func(op, _ string) bool { return op != "set" }
	c.x.Close()
	c.finished = true
	w.process.Sleep(40 * time.Millisecond)
	w.process.Store.Before = nil
}

// expectReject: a call must have been refused by now.
func expectReject(w *caseWorld, s *caseStep) {
	w.process.Sleep(40 * time.Millisecond)
	if c := w.call(s.ID); c.x.Reply == nil {
		w.wrong("%s is not refused at %v s", s.ID, s.at)
	}
}
