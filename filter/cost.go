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

// retries is 1 for a request that was sent before. All draw on one budget.
func (s *Stream) retries() int64 {
	if s.plugin.policy.Uses(policy.TierTree) && s.repeat {
		return 1
	}
	return 0
}
