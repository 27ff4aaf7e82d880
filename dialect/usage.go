// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/jsonwalk"
)

// Usage is what a provider says that a call has used, in tokens and in its own terms; -1 is not said. Of each counter the last
// value that was said stands: all providers report running totals, none increments.
type Usage struct {
	Input      int64
	Output     int64
	CacheRead  int64
	CacheWrite int64
	Reasoning  int64
	Tools      int64 // input of the provider's own tools, beside Input
	Image      int64 // in Input
	Audio      int64 // in Input

	rule usageRule
}

// A usageRule says what is inside what.
type usageRule uint8

const (
	allInside       usageRule = 0         // OpenAI
	cacheBeside     usageRule = 1 << iota // Input has nothing of the cache: what is written to it counts, what is read does not
	reasoningBeside                       // Output has no reasoning
)

// NoUsage is usage of which nothing has been said.
func NoUsage() Usage {
	return Usage{Input: -1, Output: -1, CacheRead: -1, CacheWrite: -1, Reasoning: -1, Tools: -1, Image: -1, Audio: -1}
}

// Said says whether input or output is known.
func (u *Usage) Said() bool { return u.Input >= 0 || u.Output >= 0 }

// Charged is the input that counts toward limits by the provider's own rules; -1 if it is not said.
func (u *Usage) Charged() int64 {
	if u.Input < 0 {
		return -1
	}
	n := u.Input + max(u.Tools, 0)
	if u.rule&cacheBeside != 0 {
		n += max(u.CacheWrite, 0)
	}
	return n
}

// Produced is all the output; -1 if it is not said.
func (u *Usage) Produced() int64 {
	if u.rule&reasoningBeside != 0 && u.Reasoning >= 0 {
		return max(u.Output, 0) + u.Reasoning
	}
	return u.Output
}

// Uncounted is the input that counts toward no limit and is paid for.
func (u *Usage) Uncounted() int64 {
	if u.rule&cacheBeside == 0 {
		return 0
	}
	return max(u.CacheRead, 0)
}

// Counts splits so much input and output into the kinds that have prices or weights of their own.
func (u *Usage) Counts(input, output int64) policy.TokenCounts {
	t := policy.TokenCounts{Input: input, Output: output, Reasoning: min(max(u.Reasoning, 0), output), Uncounted: u.Uncounted()}
	if u.rule&cacheBeside == 0 {
		t.Cached = min(max(u.CacheRead, 0), input)
	}
	t.Image = min(max(u.Image, 0), input-t.Cached)
	return t
}

// eachOf goes through the members of an object; anything else has none.
func eachOf(v jsonwalk.Value, f func(key string, v jsonwalk.Value)) {
	if v.IsObject() {
		v.ForEach(func(key string, v jsonwalk.Value) bool {
			f(key, v)
			return true
		})
	}
}

// counter takes a number of tokens. What is null, negative, fractional or no number says nothing.
func counter(to *int64, v jsonwalk.Value) {
	if n := v.Num(); v.Type() == jsonwalk.Number && n >= 0 && n < maxDeclared && n == math.Trunc(n) {
		*to = int64(n)
	}
}
