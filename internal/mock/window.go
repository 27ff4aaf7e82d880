// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"cmp"
	"slices"
	"time"
)

// MaxInWindow is the largest sum of input and output tokens that arrived within
// any half-open span of the given length.
func MaxInWindow(events []Event, window time.Duration) int64 {
	return MaxInWindowFunc(events, window, nil)
}

// MaxInWindowFunc is MaxInWindow over the events that keep wants; nil keeps all.
func MaxInWindowFunc(events []Event, window time.Duration, keep func(Event) bool) int64 {
	return maxInWindow(events, window, keep, func(e *Event) int64 { return e.Input + e.Output })
}

// MaxRequestsInWindow is the largest number of admitted calls that arrived within
// any half-open span of the given length; nil keeps all.
func MaxRequestsInWindow(events []Event, window time.Duration, keep func(Event) bool) int64 {
	return maxInWindow(events, window, keep, func(e *Event) int64 {
		if e.Outcome != Admitted {
			return 0
		}
		return 1
	})
}

type weighed struct{ at, weight int64 }

// maxInWindow slides over the arrivals in order of time. With weights of 0 and
// more, the largest sum is found at a span that ends right after an arrival.
func maxInWindow(events []Event, window time.Duration, keep func(Event) bool, weight func(*Event) int64) int64 {
	if window <= 0 {
		return 0
	}
	list := make([]weighed, 0, len(events))
	for i := range events {
		if keep == nil || keep(events[i]) {
			list = append(list, weighed{events[i].At, weight(&events[i])})
		}
	}
	slices.SortFunc(list, func(a, b weighed) int { return cmp.Compare(a.at, b.at) })
	var most, sum int64
	first := 0
	for _, e := range list {
		sum += e.weight
		for e.at-list[first].at >= int64(window) {
			sum -= list[first].weight
			first++
		}
		most = max(most, sum)
	}
	return most
}
