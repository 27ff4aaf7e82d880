// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"
	"time"
)

// Events run in the order of their times, those of one time in the order in which they were asked for; the past is now.
func TestClock(t *testing.T) {
	var c Clock
	var got []string
	say := func(s string) func() { return func() { got = append(got, s) } }
	c.At(20, say("c"))
	c.At(10, func() {
		got = append(got, "a")
		c.At(5, say("a2"))
	})
	c.At(10, say("b"))
	n := 0
	c.Every(30*time.Nanosecond, func() bool { n++; return n < 4 })
	c.Run(15)
	if c.Now() != 15 {
		t.Errorf("it is %d", c.Now())
	}
	c.Drain()
	if want := []string{"a", "b", "a2", "c"}; !slices.Equal(got, want) || n != 4 || c.Now() != 90 {
		t.Errorf("%v, %d, %d", got, n, c.Now())
	}
}

func TestRandIsPerActor(t *testing.T) {
	a, b := Rand(1, "a"), Rand(1, "b")
	if a.Uint64() == b.Uint64() || Rand(1, "a").Uint64() != Rand(1, "a").Uint64() {
		t.Error("actors share their numbers, or a seed gives others each time")
	}
}
