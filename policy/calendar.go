// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"sort"
	"time"
)

// A Calendar says when fixed windows begin: at midnight in a time zone, or so long after. The zero value is UTC.
type Calendar struct {
	Shifts []Shift
	Anchor time.Duration // after midnight, or after the beginning of the month
}

// A Shift is a time from which on a zone has an offset, as JSON: [1762074000,-28800]. (The filter has no time zones of its
// own: the control plane sends those that the policy names.)
type Shift [2]int64 // seconds since 1970, seconds east of UTC

// offset is how far local time is ahead of UTC, in ns.
func (c *Calendar) offset(wall int64) int64 {
	if c == nil || len(c.Shifts) == 0 {
		return 0
	}
	i := sort.Search(len(c.Shifts), func(i int) bool { return c.Shifts[i][0] > wall/int64(time.Second) })
	return c.Shifts[max(i-1, 0)][1] * int64(time.Second)
}

// window gives the beginning and the end of the window that the time wall lies in, both in ns since 1970 UTC: a month, a day
// or a week (from Monday on) of local time, or a part of a day.
func (c *Calendar) window(wall, length int64) (from, until int64) {
	anchor := int64(0)
	if c != nil {
		anchor = int64(c.Anchor)
	}
	if length < int64(Day) { // clocks that are put forward or back have no part in it
		from = wall - floorMod(wall-anchor, length)
		return from, from + length
	}
	local := wall + c.offset(wall) - anchor
	first := begin(local, length)
	if from = c.utc(first + anchor); from > wall { // it begins in an hour that the zone leaves out
		return c.utc(begin(first-1, length) + anchor), from
	}
	return from, c.utc(next(local, length) + anchor)
}

// begin is when the window of the local time begins, next when the one after it does.
func begin(local, length int64) int64 {
	if length == int64(Month) {
		t := time.Unix(0, local).UTC()
		return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC).UnixNano()
	}
	const monday = 4 * int64(Day) // 1970 began on a Thursday
	return local - floorMod(local-monday, length)
}

func next(local, length int64) int64 {
	if length == int64(Month) {
		return begin(begin(local, length)+int64(31*Day), length)
	}
	return begin(local, length) + length
}

// utc gives the time at which it is that late locally; for a time in the hour that a zone leaves out, so much after the change.
func (c *Calendar) utc(local int64) int64 {
	a := local - c.offset(local)
	b := local - c.offset(a)
	if b+c.offset(b) == local {
		return b
	}
	return max(a, b)
}

func floorMod(a, b int64) int64 {
	if m := a % b; m < 0 {
		return m + b
	} else {
		return m
	}
}
