// SPDX-License-Identifier: Apache-2.0

package feedback

import "strings"

// impliedWindow is the observation's window, or what it must be where the limit refills continuously: such a limit is full again
// after (limit-remaining)/limit of its window, which OpenAI's headers obey to the ms. It is 0 if
// neither says anything.
func (o *Observation) impliedWindow() int64 {
	if o.Dimension.Window != 0 || o.Limit <= 0 || o.Remaining < 0 || o.Reset <= 0 {
		return o.Dimension.Window
	}
	used := o.Limit - o.Remaining
	if used <= 0 {
		return 0
	}
	guess := float64(o.Reset) / float64(used) * float64(o.Limit)
	for _, w := range [...]int64{second, minute, hour, day} {
		// The reset is rounded to a ms by the provider, and to a unit at most by us.
		off := 0.01*float64(w) + 1e6/float64(used)*float64(o.Limit)
		if off < 0.2*float64(w) && guess > float64(w)-off && guess < float64(w)+off {
			return w
		}
	}
	return 0
}

// clone keeps a name of a header beyond the answer that it came with, up to a length.
func clone(s string) string { return strings.Clone(s[:min(len(s), 64)]) }
