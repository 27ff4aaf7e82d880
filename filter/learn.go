// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// A lesson is what a stream is going to teach of its model, when its answer says what was used.
type lesson struct {
	input   policy.Key  // of the model's calibration; 0: nothing is learned
	output  policy.Key  // of the model's outputs
	counted int64       // tokens of input, before any calibration; 0: not counted
	used    int64       // tokens of input as they were taken for right
	how     dialect.How // used came about
}

// An answer teaches most when little is known: each of the first is counted, although an upper bound would do for its
// reservation, and later one in learnEvery.
const (
	learnFirst = 128
	learnEvery = 16
)

// prepare says what the stream may teach. class gives the caller's class.
func (s *Stream) prepare(model string, class func() string) {
	if !s.call.API.Metered() || model == "" {
		return
	}
	h, provider := &s.plugin.policy.Hasher, s.provider.Name
	s.lesson.input = h.CalibrationKey(provider, model)
	if s.plugin.policy.Learned {
		s.lesson.output = h.OutputKey(provider, model, class())
	}
}

// calibrate puts a count of the input right, as far as answers have said how.
func (s *Stream) calibrate(now int64, q *dialect.Request) {
	if s.lesson.input == 0 || q.How != dialect.Exact && q.How != dialect.Estimate {
		return
	}
	if !q.References {
		s.lesson.counted = q.Input
	}
	c := s.vm.learner.Calibration(now, s.lesson.input)
	if n, ok := c.Apply(q.Input, q.Family.Exact()); ok {
		q.Input, q.How = n, dialect.Calibrated
	}
	s.lesson.used, s.lesson.how = q.Input, q.How
}

// countAmple counts the input of a call for which an upper bound was reserved, if there is still something to learn.
func (s *Stream) countAmple(now int64) {
	v := s.vm
	v.ample++
	if s.lesson.input == 0 || v.ample%learnEvery != 0 && v.learner.Calibration(now, s.lesson.input).Weight >= learnFirst {
		return
	}
	q := v.reader.Count()
	s.calibrate(now, &q)
}

// longOutput is what 95 of 100 outputs of the model did not exceed; 0 if that is not known, or not asked.
func (s *Stream) longOutput() int64 {
	if s.lesson.output == 0 {
		return 0
	}
	return s.vm.learner.LongOutput(s.vm.host.Now(), s.lesson.output)
}

// learn takes what the provider said of a call that came to its end.
func (s *Stream) learn(u dialect.Usage) {
	l, now, actual := &s.lesson, s.vm.host.Now(), u.Whole()
	if l.counted > 0 && actual > 0 {
		s.vm.learner.LearnInput(now, l.input, l.counted, actual, s.request.Family.Exact())
		s.vm.countError(l.how, l.used, actual)
	}
	if l.output != 0 {
		s.vm.learner.LearnOutput(now, l.output, u.Produced())
	}
}
