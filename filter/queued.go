// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"time"
)

// headerQueued tells a caller that asked, where the policy lets it, how long its request waited.
const (
	headerExplain = "x-weir-explain"
	headerQueued  = "x-weir-queued"
)

// asksWhy says whether the caller wants to know what became of its request, and may.
func (s *Stream) asksWhy() bool { return s.plugin.policy.Explain && s.header(headerExplain) == "1" }

// howLong is how long it waited: "1.234s".
func (s *Stream) howLong() string {
	return strconv.FormatFloat(time.Duration(s.queued).Seconds(), 'f', 3, 64) + "s"
}

// waited notes how long a request waited of which that is to be said.
func (w *waiter) waited(ns int64) {
	if w.asks {
		w.stream.queued = ns
	}
}
