// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Reset says when a provider's days and months begin: written as a time zone, and a time of day if it is not midnight, such
// as America/Los_Angeles, or UTC 04:00. The control plane adds the zone's shifts, for the filter has no time zones.
type Reset struct {
	Zone   string
	Anchor time.Duration
	Shifts []Shift
}

// UnmarshalText reads a reset.
func (r *Reset) UnmarshalText(b []byte) error {
	fields := strings.Fields(string(b))
	*r = Reset{}
	for i, f := range fields {
		clock, err := time.Parse("15:04", f)
		switch {
		case i == 0:
			r.Zone = f
		case i == 1 && err == nil:
			r.Anchor = time.Duration(clock.Hour())*time.Hour + time.Duration(clock.Minute())*time.Minute
		case i == len(fields)-1 && r.shifts(f):
		default:
			return fmt.Errorf("%q is no reset: write a time zone such as America/Los_Angeles, or UTC 04:00", b)
		}
	}
	if r.Zone == "" {
		return fmt.Errorf("%q is no reset: write a time zone such as America/Los_Angeles", b)
	}
	return nil
}

// shifts reads pairs of seconds since 1970 and seconds east of UTC, 1762074000=-28800, joined by commas.
func (r *Reset) shifts(s string) bool {
	for pair := range strings.SplitSeq(s, ",") {
		at, offset, _ := strings.Cut(pair, "=")
		a, err := strconv.ParseInt(at, 10, 40)
		b, err2 := strconv.ParseInt(offset, 10, 18)
		if err != nil || err2 != nil || len(r.Shifts) > 0 && a <= r.Shifts[len(r.Shifts)-1][0] {
			return false
		}
		r.Shifts = append(r.Shifts, Shift{a, b})
	}
	return true
}

// MarshalText writes the reset.
func (r Reset) MarshalText() ([]byte, error) {
	b := []byte(r.Zone)
	if r.Anchor > 0 {
		b = fmt.Appendf(b, " %02d:%02d", r.Anchor/time.Hour, r.Anchor%time.Hour/time.Minute)
	}
	for i, s := range r.Shifts {
		b = append(b, " ,"[min(i, 1)])
		b = fmt.Appendf(b, "%d=%d", s[0], s[1])
	}
	return b, nil
}

// calendar makes the calendar of a reset.
func (c *compiler) calendar(path string, r *Reset) *Calendar {
	if r == nil {
		return nil
	}
	if len(r.Shifts) == 0 && r.Zone != "UTC" {
		c.add(path, "write UTC, or a zone such as America/Los_Angeles", "unknown time zone %q", r.Zone)
	}
	return &Calendar{Shifts: r.Shifts, Anchor: r.Anchor}
}
