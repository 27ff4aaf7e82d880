// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"log/slog"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy/fleet"
)

// An Envoy that begins a new life with each report fills neither memory nor store, and others begin theirs.
func TestLivesOfOneNodeFillTheStore(t *testing.T) {
	wall := time.Unix(1_700_000_000, 0)
	c, err := newCore(1, wall, NewVolatile(true), slog.New(slog.DiscardHandler), func() int { return 1 })
	if err != nil {
		t.Fatal(err)
	}
	second := int64(time.Second)
	for i := range uint64(3 * maxLives) {
		c.at(1+int64(i)*second/20, wall)
		c.report(&fleet.FromNode{Node: "bad", Incarnation: i + 1, Number: 1})
		_, _ = c.tick()
	}
	if n := len(c.census.lives); n != maxLives || c.nodes["bad"].incarnation != maxLives {
		t.Errorf("%d lives, in the life %d", n, c.nodes["bad"].incarnation)
	}
	c.report(&fleet.FromNode{Node: "good", Incarnation: 7, Number: 1})
	if c.nodes["good"] == nil {
		t.Error("another one is not heard")
	}
	c.at(1+2*forgetNode, wall)
	c.sweepCensus()
	c.report(&fleet.FromNode{Node: "bad", Incarnation: 1 << 40, Number: 1})
	if n := c.census.number["bad"]; n > 2 || c.nodes["bad"].incarnation != 1<<40 || len(c.census.lives) > 4 {
		t.Errorf("%d of %d lives", n, len(c.census.lives))
	}
}
