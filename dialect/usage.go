// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"

	"github.com/tidwall/gjson"
)

// Usage is what a provider says that a call has used, in tokens; -1 is not said. Of each counter the last value that was
// said stands: all providers report running totals, none increments.
type Usage struct {
	Input      int64 // what counts toward an input limit by the provider's own rules
	CacheRead  int64
	CacheWrite int64
	Output     int64
}

// NoUsage is usage of which nothing has been said.
func NoUsage() Usage { return Usage{-1, -1, -1, -1} }

// Said says whether input or output is known.
func (u Usage) Said() bool { return u.Input >= 0 || u.Output >= 0 }

// Charged is the input that counts: for Anthropic, input_tokens leaves the cache out, and what is written to the cache
// counts, what is read does not; OpenAI's prompt_tokens has all in it.
func (u Usage) Charged() int64 {
	if u.Input < 0 {
		return -1
	}
	return u.Input + max(u.CacheWrite, 0)
}

// merge takes over what a usage object says. Members that are null, negative, fractional or no numbers say nothing.
func (u *Usage) merge(v gjson.Result) {
	if !v.IsObject() {
		return
	}
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens", "input_tokens":
			counter(&u.Input, v)
		case "completion_tokens", "output_tokens":
			counter(&u.Output, v)
		case "cache_creation_input_tokens":
			counter(&u.CacheWrite, v)
		case "cache_read_input_tokens":
			counter(&u.CacheRead, v)
		}
		return true
	})
}

func counter(to *int64, v gjson.Result) {
	if v.Type == gjson.Number && v.Num >= 0 && v.Num < maxDeclared && v.Num == math.Trunc(v.Num) {
		*to = int64(v.Num)
	}
}
