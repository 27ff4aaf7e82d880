// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/feedback"
)

// Cases about rates say more than the filter shows: which limit is in force after each answer. They run on the package that decides
// it: each answer is classified, and the verdict steps a controller. TestGate and its like have the filter itself.

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
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
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
