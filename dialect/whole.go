// SPDX-License-Identifier: Apache-2.0

package dialect

// Whole is all input that a call had, from a cache or not: what a count of the request is to be compared with. OpenAI has
// cached tokens in its input, Anthropic has them beside it. -1: not said.
func (u Usage) Whole() int64 {
	if u.Input < 0 {
		return -1
	}
	if u.rule&cacheBeside == 0 {
		return u.Input
	}
	return u.Input + max(u.CacheRead, 0) + max(u.CacheWrite, 0)
}
