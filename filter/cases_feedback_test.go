// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy/feedback"
	"github.com/weirproxy/weir/policy/tokens"
)

// verdict is what an answer means. One that says that it is good is read as the filter reads it.
func (w *caseWorld) verdict(c *caseCall) feedback.Verdict {
	r := feedback.Reply{Status: c.status, Wall: caseStart.UnixNano(), Headers: c.started, Body: bytes.Join(c.answer, nil)}
	if c.status < 400 {
		var reader dialect.Reader
		var a dialect.Answer
		d, _ := dialect.Parse(w.policy.Providers[0].Dialect)
		reader.Start(&a, d.CallOf(cmp.Or(c.request.Method, "POST"), c.request.Path).API, tokens.Family(0), c.kind)
		for _, piece := range c.answer {
			a.Feed(piece)
		}
		a.End()
		r.Body = a.Refusal()
	}
	return feedback.Classify(r)
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
	if n := w.process.Metric("weir_provider_refusals_total.class." + want.String()); (n > 0) != (want != feedback.OK && w.last().x.Sent) {
		w.wrong("the filter has counted %d of class %v", n, want)
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
