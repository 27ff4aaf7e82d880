// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// checkNoReset: once an answer has begun, weir neither replies nor resets, whatever the call turns out to cost. Of a call that
// was not even sent that is seen where no limit is.
func checkNoReset(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	if w.admitted(func(*caseCall) bool { return true }) == 0 {
		o, err := newCaseWorld(w.c, w.module, nil, w.last().request.Path, caseMeasure{})
		if err != nil {
			w.wrong("%v", err)
			return
		}
		defer o.close()
		o.problems, o.unknown = w.problems, w.unknown
		o.act()
		w = o
	}
	for _, c := range w.order {
		if c.status == 0 || c.x.Reply != nil || c.x.Held {
			w.wrong("%s was stopped in its answer", c.id)
		} else if !c.finished {
			w.respondBody(c, []byte("data: [DONE]\n\n"), true)
		}
	}
}

// checkUnchanged: bodies leave as they came, in all that a case tries, and answers are not held.
func checkUnchanged(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	for _, c := range w.order {
		if c.x.Held {
			w.wrong("%s: the answer was held", c.id)
		}
		if !c.x.Sent || c.body == nil {
			continue
		}
		if !bytes.Equal(c.x.Body, c.body.bytes()) {
			w.wrong("%s: %.60q became %.60q", c.id, c.body.bytes(), c.x.Body)
		}
		if want := c.request.Headers["content-encoding"]; c.x.Upstream("content-encoding") != want {
			w.wrong("%s: content-encoding is %q, want %q", c.id, c.x.Upstream("content-encoding"), want)
		}
	}
}

func checkPathUnchanged(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	if c := w.last(); c.x.Sent && c.x.Upstream(":path") != c.request.Path {
		w.wrong("the path became %s", c.x.Upstream(":path"))
	}
}

// checkConsistent: the length that leaves is that of the body that leaves, or nobody says it.
func checkConsistent(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	c := w.last()
	length := c.x.Upstream("content-length")
	same := bytes.Equal(c.x.Body, c.body.bytes()) && length == c.request.Headers["content-length"]
	if c.x.Sent && !same && length != "" && length != fmt.Sprint(len(c.x.Body)) {
		w.wrong("content-length %s for %d bytes", length, len(c.x.Body))
	}
}

func checkNeverPauses(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	for _, c := range w.order {
		if c.x.Held {
			w.wrong("%s: the answer was held", c.id)
		}
	}
}

// checkLateHeaders: after the first callback of an answer its headers are gone.
func checkLateHeaders(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	for _, c := range w.order {
		if !slices.Equal(c.started, c.x.AnswerHeaders()) {
			w.wrong("%s: %v became %v", c.id, c.started, c.x.AnswerHeaders())
		}
	}
}

func checkBuffered(w *caseWorld, v json.RawMessage) {
	if string(v) != "false" {
		w.notKnown("buffered %s", v)
	}
	if n := w.last().x.Buffered; n > casePieceSize+1024 {
		w.wrong("%d bytes were buffered", n)
	}
}
