// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestMaxInWindow(t *testing.T) {
	at := func(ms, in, out int64) Event {
		return Event{At: ms * int64(time.Millisecond), Input: in, Output: out, Outcome: Admitted, Tag: "a"}
	}
	rows := []struct {
		name   string
		events []Event
		want   int64
	}{
		{"none", nil, 0},
		{"one", []Event{at(5, 1, 2)}, 3},
		{"exactly a window apart", []Event{at(0, 1, 0), at(1000, 1, 0)}, 1},
		{"just within", []Event{at(1, 1, 0), at(1000, 1, 0)}, 2},
		{"out of order", []Event{at(1500, 4, 0), at(0, 1, 0), at(600, 2, 0)}, 6},
		{"same moment", []Event{at(7, 1, 1), at(7, 1, 1), at(7, 1, 1)}, 6},
	}
	for _, row := range rows {
		if got := MaxInWindow(row.events, time.Second); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
	if got := MaxInWindow([]Event{at(0, 1, 0)}, 0); got != 0 {
		t.Errorf("empty window: %d", got)
	}
}

func TestMaxInWindowAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Event {
			return Event{
				At:     rapid.Int64Range(0, 60).Draw(t, "at"),
				Output: rapid.Int64Range(0, 9).Draw(t, "n"),
				Tag:    rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tag"),
			}
		})).Draw(t, "events")
		const window = 10
		want := int64(0)
		for start := int64(-window); start <= 60; start++ {
			sum := int64(0)
			for _, e := range events {
				if e.At >= start && e.At < start+window && e.Tag == "a" {
					sum += e.Output
				}
			}
			want = max(want, sum)
		}
		got := MaxInWindowFunc(events, window, func(e Event) bool { return e.Tag == "a" })
		if got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}
