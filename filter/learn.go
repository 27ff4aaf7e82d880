// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// A lesson is what a stream is going to teach of its model, when its answer says what was used.
type lesson struct {
	input   taught      // of the model's calibration; 0: nothing is learned
	output  taught      // of the model's outputs
	raw     int64       // tokens of input, before any calibration; 0: not counted
	counted int64       // the same, where something can be learned of it
	used    int64       // tokens of input as they were taken for right
	how     dialect.How // used came about
}

// A taught is where lessons are kept: those of the caller's tenant, and those of all tenants.
type taught struct{ own, all policy.Key }

// An answer teaches most when little is known: each of the first is counted, although an upper bound would do for its
// reservation, and later one in learnEvery.
const (
	learnFirst = 128
	learnEvery = 64
)

// prepare says what the stream may teach, by its class.
func (s *Stream) prepare(model, tenant string) {
	if !s.call.API.Metered() || model == "" {
		return
	}
	h, provider := &s.plugin.policy.Hasher, s.provider.Name
	input := h.CalibrationKey(provider, model)
	s.lesson.input = taught{h.TenantKey(input, tenant), input}
	if s.plugin.policy.Learned {
		output := h.OutputKey(provider, model, s.class.Name)
		s.lesson.output = taught{h.TenantKey(output, tenant), output}
	}
}

// calibrate puts a count of the input right, as far as answers have said how.
func (s *Stream) calibrate(now int64, q *dialect.Request) {
	if s.lesson.input.all == 0 || q.How != dialect.Exact && q.How != dialect.Estimate {
		return
	}
	s.lesson.raw = q.Input
	if !q.References {
		s.lesson.counted = q.Input
	}
	c := s.vm.learner.CalibrationOf(now, s.lesson.input.own, s.lesson.input.all)
	if n, ok := c.Apply(q.Input, q.Family.Exact()); ok {
		q.Input, q.How = n, dialect.Calibrated
	}
	s.lesson.used, s.lesson.how = q.Input, q.How
}

// add counts tokens of input that weir puts into the request itself.
func (l *lesson) add(n int64) {
	for _, t := range []*int64{&l.raw, &l.counted, &l.used} {
		if *t > 0 {
			*t += n
		}
	}
}

// countAmple counts the input of a call for which an upper bound was reserved, if there is still something to learn.
func (s *Stream) countAmple(now int64) {
	v := s.vm
	v.ample++
	if s.lesson.input.all == 0 || v.ample%learnEvery != 0 && v.learner.Calibration(now, s.lesson.input.own).Weight >= learnFirst {
		return
	}
	q := v.reader.Count()
	s.calibrate(now, &q)
}

// longOutput is what 95 of 100 outputs of the model did not exceed; 0 if that is not known, or not asked.
func (s *Stream) longOutput() int64 {
	if s.lesson.output.all == 0 {
		return 0
	}
	return s.vm.learner.LongOutputOf(s.vm.host.Now(), s.lesson.output.own, s.lesson.output.all)
}

// heedUsage takes what an answer says of its usage. Where one says nothing of use that should, the next calls do not rely on it.
func (s *Stream) heedUsage(u dialect.Usage, source policy.ChargeSource) {
	if source == policy.FromUsage {
		s.learn(u)
	} else if s.lesson.input.all != 0 && s.saysUsage(&s.request) { // of a tool nobody expects it
		*s.unsaid() = learnEvery
	}
}

// unsaid is how many calls of the model are still to be counted. Models that share a place are counted for each other.
func (s *Stream) unsaid() *uint { return &s.vm.unsaid[s.lesson.input.all%policy.Key(len(s.vm.unsaid))] }

// reliesOnUsage says whether an upper bound will do for now, because the answer is going to say what was used.
func (s *Stream) reliesOnUsage(q *dialect.Request) bool {
	if n := s.unsaid(); *n > 0 {
		*n--
		return false
	}
	return s.saysUsage(q)
}

// learn takes what the provider said of a call that came to its end.
func (s *Stream) learn(u dialect.Usage) {
	l, now, actual := &s.lesson, s.vm.host.Now(), u.Whole()
	if l.counted > 0 && actual > 0 {
		s.vm.learner.LearnInputOf(now, l.input.own, l.input.all, l.counted, actual, s.request.Family.Exact())
		s.vm.countError(l.how, l.used, actual)
		if s.plugin.policy.Shared {
			s.vm.meetModel(l.input.all)
		}
	}
	if l.output.all != 0 {
		s.vm.learner.LearnOutputOf(now, l.output.own, l.output.all, u.Produced())
	}
}
