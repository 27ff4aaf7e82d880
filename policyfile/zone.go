// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"time"
	_ "time/tzdata" // the machine may have none

	"github.com/weirproxy/weir/policy"
)

// The years for which a zone's shifts are written into the policy: fixed, so that a policy is the same bytes every day.
var zoneFrom, zoneUntil = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2041, 1, 1, 0, 0, 0, 0, time.UTC)

// zones writes the shifts of the zones that limits name into the spec. Unknown zones are left to be found by the compiler.
func zones(spec *policy.Spec) {
	limits := []map[string]*policy.LimitSpec{spec.Limits.Tenant, spec.Limits.User, spec.Limits.Tool}
	for _, p := range spec.Providers {
		limits = append(limits, p.Models)
	}
	for _, e := range spec.Limits.Environment {
		if e != nil {
			limits = append(limits, map[string]*policy.LimitSpec{"": &e.LimitSpec})
		}
	}
	for _, m := range limits {
		for _, l := range m {
			if l != nil && l.Reset != nil && l.Reset.Zone != "UTC" {
				l.Reset.Shifts = shifts(l.Reset.Zone)
			}
		}
	}
}

// shifts lists the times from which on the zone has another offset. The time package takes a leap year to end on its 365th day,
// and for that day gives an end that is not after it: then it goes on by the hour.
func shifts(zone string) (list []policy.Shift) {
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil
	}
	for t := zoneFrom.In(loc); t.Before(zoneUntil); {
		_, offset := t.Zone()
		if n := len(list); n == 0 || list[n-1][1] != int64(offset) {
			list = append(list, policy.Shift{t.Unix(), int64(offset)})
		}
		_, end := t.ZoneBounds()
		if end.IsZero() {
			break
		}
		if !end.After(t) {
			end = t.Add(time.Hour)
		}
		t = end
	}
	return list
}
