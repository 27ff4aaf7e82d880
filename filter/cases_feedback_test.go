// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/feedback"
)

// The filter does not follow yet what providers answer. Until it does (issue 4 of 7), cases about that run on the package that
// will decide it: each answer is classified, and the verdict steps a controller.

// caseAdaptive is a limit that follows a provider's answers: `true`, or an object.
type caseAdaptive struct {
	Start, Min int64
	Factor     float64
}

// defaultAdaptive is what a case means that does not say.
var defaultAdaptive = caseAdaptive{Start: 1000, Min: 1, Factor: 0.5}

func (a *caseAdaptive) UnmarshalJSON(b []byte) error {
	*a = defaultAdaptive
	if string(b) == "true" {
		return nil
	}
	type plain caseAdaptive
	return strict(b, (*plain)(a))
}

// verdict is what an answer means. In a stream any event may be the one that refuses.
func (w *caseWorld) verdict(c *caseCall) (v feedback.Verdict) {
	r := feedback.Reply{Status: c.status, Wall: caseStart.UnixNano(), Body: bytes.Join(c.answer, nil)}
	for _, h := range c.started {
		r.Headers = append(r.Headers, h)
	}
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

// A caseRate is the rate of one model.
type caseRate struct {
	of  *caseAdaptive
	c   *feedback.Controller
	was map[string]uint32 // epochs in which calls were admitted
}

func newCaseRate(a *caseAdaptive) *caseRate {
	r := feedback.DefaultRules()
	r.Decrease = policy.Share(a.Factor * float64(policy.Whole))
	r.Floor = policy.Share(a.Min * int64(policy.Whole) / a.Start)
	return &caseRate{of: a, c: feedback.NewController(r, policy.Whole, 0), was: map[string]uint32{}}
}

func (r *caseRate) limit() int64 { return r.c.Limit(r.of.Start) }

// answered steps the controller with one answer.
func (r *caseRate) answered(now int64, id string, v feedback.Verdict) {
	s := feedback.Sample{Epoch: r.was[id]}
	switch v.Class {
	case feedback.OK:
		s.Answered = 1
	case feedback.Congestion:
		s.Answered, s.Rejected = 1, 1
	}
	r.c.Step(now, s)
}

// adaptive is how the case's limit follows.
func (w *caseWorld) adaptive() *caseAdaptive {
	for _, t := range w.tiers() {
		if t.Adaptive != nil {
			return t.Adaptive
		}
	}
	return &defaultAdaptive
}

// rates replays the calls of the world in the order of their callbacks, which the epochs depend on.
func (w *caseWorld) rates() map[string]*caseRate {
	type step struct {
		at     float64
		call   *caseCall
		answer bool
	}
	var steps []step
	for _, c := range w.order {
		if c.x.Sent {
			steps = append(steps, step{c.at, c, false})
		}
		if c.status != 0 {
			steps = append(steps, step{c.answeredAt, c, true})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return int(1e6 * (a.at - b.at)) })
	rates := map[string]*caseRate{}
	for _, s := range steps {
		model := s.call.model()
		if rates[model] == nil {
			rates[model] = newCaseRate(w.adaptive())
		}
		if r := rates[model]; s.answer {
			r.answered(int64(s.at*1e9), s.call.id, w.verdict(s.call))
		} else {
			r.was[s.call.id] = r.c.Epoch()
		}
	}
	return rates
}

// model is the one that a call's body names.
func (c *caseCall) model() string {
	var b struct{ Model string }
	_ = json.Unmarshal(c.request.Body, &b)
	return b.Model
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

func checkAIMD(w *caseWorld, v json.RawMessage) {
	c := w.last()
	r := newCaseRate(&defaultAdaptive)
	r.answered(1e9, c.id, w.verdict(c))
	switch got := r.limit(); {
	case string(v) == `"decrease"`:
		if got >= r.of.Start {
			w.wrong("the rate was not cut")
		}
	case string(v) == `"no change"` || string(v) == `"unchanged"`:
		if got != r.of.Start {
			w.wrong("the rate was changed to %d of %d", got, r.of.Start)
		}
	default:
		w.notKnown("unknown aimd %s", v)
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

func checkLimitAfter(w *caseWorld, v json.RawMessage) {
	for _, model := range slices.Sorted(maps.Keys(w.rates())) {
		w.checkRate(w.rates()[model], model, v)
	}
}

func checkLimits(w *caseWorld, v json.RawMessage) {
	var want map[string]json.RawMessage
	if json.Unmarshal(v, &want) != nil {
		w.notKnown("limit %s", v)
	}
	rates := w.rates()
	for model, v := range want {
		r := rates[model]
		if r == nil { // nothing was ever sent to it
			r = newCaseRate(w.adaptive())
		}
		w.checkRate(r, model, v)
	}
	for model, r := range rates {
		if _, ok := want[model]; !ok && r.limit() >= r.of.Start {
			w.wrong("the limit of %s did not fall", model)
		}
	}
}

func (w *caseWorld) checkRate(r *caseRate, model string, v json.RawMessage) {
	want := r.of.Start
	if string(v) != `"unchanged"` && json.Unmarshal(v, &want) != nil {
		w.notKnown("limit %s", v)
	}
	if got := r.limit(); got != want {
		w.wrong("the limit of %s is %d, want %d", model, got, want)
	}
}
