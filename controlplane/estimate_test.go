// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// An Envoy that has learned of ten thousand models leaves room for the others.
func TestEstimatesOfOneNodeTakeAllTheRoom(t *testing.T) {
	var e estimates
	now := time.Unix(1_700_000_000, 0)
	hear := func(node string, from, n int) {
		m := &fleet.FromNode{Node: node}
		for i := range n {
			m.Ratios = append(m.Ratios, fleet.Ratio{Key: policy.Key(from + i), Weight: 1, Ratio: 1e6})
		}
		e.hear(now, m)
	}
	for i := range 20 {
		hear("bad", i*1000, 1000)
	}
	hear("good", 0, 64)
	if e.of["bad"] != maxOfNode || e.of["good"] != 64 || len(e.heard) != maxOfNode+64 {
		t.Errorf("%v of %d", e.of, len(e.heard))
	}
	now = now.Add(2 * estimateTime)
	hear("bad", 1_000_000, 10)
	if e.of["bad"] != 10 || len(e.heard) != 10 {
		t.Errorf("%v of %d, later", e.of, len(e.heard))
	}
}
