// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/policy/policytest"
)

// A policy that lets days begin elsewhere gives nobody a second day: what was used of a day that is not over goes on counting.
func TestDaysBeginElsewhere(t *testing.T) {
	west, _ := zoned("America/Los_Angeles", 0)
	for _, row := range []struct {
		hour     int // UTC
		kind     WindowKind
		from, to *Calendar
	}{
		{3, Fixed, west, nil}, {3, Fixed, nil, west}, {12, Fixed, west, &Calendar{Anchor: 18 * time.Hour}},
		{1, Fixed, &Calendar{Anchor: 4 * time.Hour}, nil}, {3, Sliding, nil, west}, {3, Continuous, nil, west},
	} {
		l, now := NewLedger(policytest.NewStore(), 1), int64(time.Hour)
		l.SetWall(now, time.Date(2026, 11, 10, row.hour, 0, 0, 0, time.UTC).UnixNano())
		path := func(k WindowKind, c *Calendar) *Path {
			m := MeterSpec{Dimension: RPD, Kind: k, Limit: 100, Calendar: c}
			if k != Fixed {
				m.BurstShare = Whole
			}
			return pathOf(map[Tier]*Limit{TierTenant: meters(m)}, nil)
		}
		n := admitted(l, now, path(row.kind, row.from), Cost{Requests: 1}, 60)
		for range 3 {
			now += int64(time.Minute)
			n += admitted(l, now, path(Fixed, row.to), Cost{Requests: 1}, 60)
			now += int64(time.Minute)
			n += admitted(l, now, path(row.kind, row.from), Cost{Requests: 1}, 60)
		}
		if n > 100 {
			t.Errorf("%+v: %d calls within minutes, the limit is 100 a day", row, n)
		}
	}
}
