// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// saysUsage says whether the answer is going to say its usage, so that it does not matter what was counted before.
func (s *Stream) saysUsage(q *dialect.Request) bool {
	return !q.Stream || q.IncludeUsage || s.call.API.TellsUsage()
}

// cost is what is reserved for a request.
func (s *Stream) cost(path *policy.Path, m *policy.Model, q *dialect.Request) policy.Cost {
	if !s.call.API.Metered() {
		return policy.Cost{Requests: 1, Retries: s.retries()}
	}
	t := policy.TokenCounts{Input: q.Input, Output: max(s.plugin.policy.LearnedOutput(path, m, q.Input, q.Output, s.longOutput()), q.Least)}
	switch q.How {
	case dialect.Length:
		t.Input = s.plugin.policy.GuessedInput(path, q.Input, t.Output)
	case dialect.Calibrated: // what only lessons make too large is not refused for good
		t.Input = max(s.plugin.policy.GuessedInput(path, q.Input, t.Output), min(q.Input, s.lesson.raw))
	}
	c := s.rating.Cost(t)
	c.Retries = s.retries()
	return c
}

// retries is 1 for a request that was sent before: by a library, which says so (OpenAI's and Anthropic's count in
// x-stainless-retry-count), by an Envoy before this one, or by a planner that declares it. They draw on one budget.
func (s *Stream) retries() int64 {
	if s.plugin.policy.Uses(policy.TierTree) && s.isRetry() {
		return 1
	}
	return 0
}

// isRetry says whether the caller has sent the request before.
//
//go:noinline
func (s *Stream) isRetry() bool {
	for _, h := range [...]struct{ name, first string }{{"x-stainless-retry-count", "0"}, {"x-envoy-attempt-count", "1"}, {"x-weir-retry", "0"}} {
		if v := s.header(h.name); v != "" && v != h.first {
			return true
		}
	}
	return false
}
