// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"testing"

	"github.com/weirproxy/weir/filter/filtertest"
)

// What Envoy calls by an id that is not there, or not any more, does no harm to those that are.
func TestStrayCalls(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		x := p.Worker(0).Open(chat("a", "hi", 92))
		p.Worker(0).Stray()
		x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
		if got := used(t, p, "a"); got != 10 {
			t.Errorf("%d tokens count, want 10", got)
		}
	})
}

// Streams are found by their ids however many there are at once, and in whatever order they end.
func TestManyStreams(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		const n = 3000 // several in each bucket of the table
		open := make([]*filtertest.Exchange, n)
		for i := range open {
			open[i] = p.Worker(0).Open(request("/tool/x", "a", "{}"))
		}
		for i := range open { // 7 has no factor of n
			open[i*7%n].Answer(200, "{}")
		}
		if admitted := p.Metric("weir_charges_total"); admitted != n {
			t.Errorf("%d were settled, want %d", admitted, n)
		}
	})
}
