// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weirproxy/weir/policy/feedback"
)

// verdict is what an answer means. In a stream any event may be the one that refuses.
func (w *caseWorld) verdict(c *caseCall) (v feedback.Verdict) {
	r := feedback.Reply{Status: c.status, Wall: caseStart.UnixNano(), Headers: c.started, Body: bytes.Join(c.answer, nil)}
	if c.status >= 400 || !strings.HasPrefix(c.kind, "text/event-stream") {
		return feedback.Classify(r)
	}
	whole := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(r.Body))
	for _, event := range strings.Split(whole, "\n\n") {
		r.Body = []byte(event)
		if v = feedback.Classify(r); v.Class != feedback.OK {
			return v
		}
	}
	return v
}

// caseClasses are feedback's classes in the words of cases.
var caseClasses = map[string]feedback.Class{
	"ok": feedback.OK, "congestion": feedback.Congestion, "overload": feedback.Overload, "terminal": feedback.Exhausted,
	"client_error": feedback.ClientError,
}

// checkClass, checkAIMD and the like compare what an answer meant with what it should.
func checkClass(w *caseWorld, v json.RawMessage) {
	var name string
	_ = json.Unmarshal(v, &name)
	want, ok := caseClasses[name]
	if !ok {
		w.notKnown("unknown class %s", v)
		return
	}
	if got := w.verdict(w.last()); got.Class != want {
		w.wrong("class %v, want %s", got.Class, name)
	}
}

func checkDimension(w *caseWorld, v json.RawMessage) {
	if got := w.verdict(w.last()).Dimension.Quantity.String(); fmt.Sprintf("%q", got) != string(v) {
		w.wrong("dimension %s, want %s", got, v)
	}
}

// checkWait compares the wait that an answer asked for; null: it asked for none.
func checkWait(w *caseWorld, v json.RawMessage) {
	got := w.verdict(w.last())
	if string(v) == "null" {
		if got.Told {
			w.wrong("a wait of %v s, want none", float64(got.Wait)/1e9)
		}
		return
	}
	var want float64
	if json.Unmarshal(v, &want) != nil {
		w.notKnown("wait_s %s", v)
	}
	if d := float64(got.Wait)/1e9 - want; d > 1e-6 || d < -1e-6 || want > 0 && !got.Told {
		w.wrong("wait %v s (told: %v), want %v", float64(got.Wait)/1e9, got.Told, want)
	}
}

// checkCapped: a wait beyond all reason is honoured as far as there is one. A gate is closed for it, and nobody waits in a queue.
func checkCapped(w *caseWorld, v json.RawMessage) {
	got := w.verdict(w.last())
	var g feedback.Gate
	until, _ := g.Close(1, got, 0)
	if !got.Told || got.Wait <= 0 || got.Wait > feedback.MaxWait || until <= 1 || got.Class != feedback.Exhausted {
		w.wrong("%+v, closed until %d", got, until)
	}
	wantTrue(w, v)
}

func checkLearned(w *caseWorld, v json.RawMessage) {
	c := w.last()
	var l feedback.Learner
	r := feedback.Reply{Status: c.status, Wall: caseStart.UnixNano(), Headers: c.started}
	if f := l.Take(nil, 1, r, nil); string(v) != `"unchanged"` {
		w.notKnown("unknown learned_limit %s", v)
	} else if len(f) > 0 || len(l.Limits()) > 0 {
		w.wrong("learned %+v", f)
	}
}
