// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/policy/brief"
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
		switch {
		case i == 0:
			r.Zone = f
		case i == 1 && r.clock(f):
		case i == len(fields)-1 && r.shifts(f):
		default:
			return brief.Errorf("%q is no reset: write a time zone such as America/Los_Angeles, or UTC 04:00", b)
		}
	}
	if r.Zone == "" {
		return brief.Errorf("%q is no reset: write a time zone such as America/Los_Angeles", b)
	}
	return nil
}

// clock reads a time of day, 4:00 or 04:00.
func (r *Reset) clock(s string) bool {
	hour, minute, _ := strings.Cut(s, ":")
	h, err := strconv.ParseUint(hour, 10, 8)
	m, err2 := strconv.ParseUint(minute, 10, 8)
	if err != nil || err2 != nil || len(hour) > 2 || len(minute) != 2 || h > 23 || m > 59 {
		return false
	}
	r.Anchor = time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	return true
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
		b = append(b, time.Time{}.Add(r.Anchor).Format(" 15:04")...)
	}
	for i, s := range r.Shifts {
		b = append(b, " ,"[min(i, 1)])
		b = append(strconv.AppendInt(b, s[0], 10), '=')
		b = strconv.AppendInt(b, s[1], 10)
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
