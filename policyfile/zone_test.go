// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"testing"
	"time"
)

// Each zone's shifts come to an end, and say at every hour what the zone says, on the last day of a leap year, too.
func TestShifts(t *testing.T) {
	for _, zone := range []string{"America/Los_Angeles", "Europe/Dublin", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca", "America/Sao_Paulo"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		list := shifts(zone)
		i := 0
		for at := zoneFrom; at.Before(zoneUntil); at = at.Add(time.Hour) {
			for i+1 < len(list) && list[i+1][0] <= at.Unix() {
				i++
			}
			if _, offset := at.In(loc).Zone(); list[i][1] != int64(offset) {
				t.Fatalf("%s at %v: %d, want %d", zone, at, list[i][1], offset)
			}
		}
		if len(list) > 80 {
			t.Errorf("%s has %d shifts", zone, len(list))
		}
	}
}
