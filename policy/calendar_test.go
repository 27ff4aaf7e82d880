// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

// zoned is a calendar of a real zone, as the control plane makes it, and the zone.
func zoned(name string, anchor time.Duration) (*Calendar, *time.Location) {
	loc, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	c := &Calendar{Anchor: anchor}
	for t := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).In(loc); t.Year() < 2030; {
		_, offset := t.Zone()
		c.Shifts = append(c.Shifts, Shift{t.Unix(), int64(offset)})
		if _, t = t.ZoneBounds(); t.IsZero() {
			break
		}
	}
	return c, loc
}

func drawZone(t *rapid.T) (*Calendar, *time.Location) {
	zones := []string{"UTC", "America/Los_Angeles", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "America/Santiago"}
	return zoned(rapid.SampledFrom(zones).Draw(t, "zone"), rapid.SampledFrom([]time.Duration{0, 2*time.Hour + 30*time.Minute, 7 * time.Hour}).Draw(t, "anchor"))
}

// Windows of a calendar follow each other without a gap, and days and months begin when clocks on the wall there say so.
func TestCalendar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, loc := drawZone(t)
		length := rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, Day, 7 * Day, Month}).Draw(t, "window")
		wall := rapid.Int64Range(time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2029, 11, 1, 0, 0, 0, 0, time.UTC).Unix()).Draw(t, "now") * 1e9
		if s := rapid.SampledFrom(c.Shifts).Draw(t, "shift"); len(c.Shifts) > 1 && rapid.Bool().Draw(t, "near a shift") {
			wall = (max(s[0], c.Shifts[1][0]) + rapid.Int64Range(-90_000, 90_000).Draw(t, "by")) * 1e9
		}
		from, until := c.window(wall, int64(length))
		if from > wall || until <= wall {
			t.Fatalf("%v lies outside %v to %v", time.Unix(0, wall).In(loc), time.Unix(0, from).In(loc), time.Unix(0, until).In(loc))
		}
		if next, _ := c.window(until, int64(length)); next != until {
			t.Fatalf("the next window begins at %v, not at %v", time.Unix(0, next).In(loc), time.Unix(0, until).In(loc))
		}
		if length < Day {
			return
		}
		first := time.Unix(0, from).In(loc)
		clock := time.Duration(first.Hour())*time.Hour + time.Duration(first.Minute())*time.Minute
		if late := clock - c.Anchor; late != 0 && late != time.Hour && late != 30*time.Minute { // in the hour that is left out
			t.Fatalf("a window begins at %v, the anchor is %v", first, c.Anchor)
		}
		if length == Month && first.Day() != 1 || length == 7*Day && first.Weekday() != time.Monday {
			t.Fatalf("a window of %v begins on %v", length, first)
		}
	})
}

// No day of the provider ever has more than the limit, though its clock differs from ours by as much as the guard (P9).
func TestFixedWindowPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := drawZone(t)
		m := NewMeter(MeterSpec{Dimension: rapid.SampledFrom([]Dimension{RPM, RPD, TPD, USDPerMonth}).Draw(t, "dimension"), Kind: Fixed, Limit: 1000, Calendar: c})
		w := m.rate.window
		ahead := rapid.Int64Range(-min(maxGuard, w/subWindows), min(maxGuard, w/subWindows)).Draw(t, "provider's clock")
		start := time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC).UnixNano()
		x := &meterRun{t: t, m: m}
		x.s = newMeterState(0, m)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "to the edge") { // where days change
				_, until := c.window(start+x.now, w)
				x.now = max(x.now, until-start+rapid.Int64Range(-2*maxGuard, 2*maxGuard).Draw(t, "around"))
			}
			x.act(start)
			counts := map[int64]int64{}
			for _, h := range x.history {
				day, _ := c.window(start+h.at+ahead, w)
				if counts[day] += h.counts; counts[day] > m.rate.limit {
					t.Fatalf("%d on the provider's day from %v on, the limit is %d", counts[day], time.Unix(0, day).UTC(), m.rate.limit)
				}
			}
		}
	})
}

// All of a fixed window can be used at once, and again as soon as the next one has begun; the wait says when.
func TestFixedWindowIsUsable(t *testing.T) {
	c, loc := zoned("America/Los_Angeles", 0)
	m := NewMeter(MeterSpec{Dimension: RPD, Kind: Fixed, Limit: 1500, Calendar: c})
	evening := time.Date(2026, 11, 30, 21, 0, 0, 0, loc)
	s := newMeterState(0, m)
	s.roll(0, evening.UnixNano(), m)
	if w := s.wait(0, 1500); w != 0 {
		t.Fatalf("must wait %v for the first", time.Duration(w))
	}
	s.take(0, 1500)
	w := s.wait(0, 1)
	if want := 3*time.Hour + 5*time.Second; time.Duration(w) != want {
		t.Errorf("the wait is %v, midnight is in 3 h", time.Duration(w))
	}
	if s.roll(w-1, evening.UnixNano(), m); s.wait(w-1, 1) == 0 {
		t.Error("admitted before the wait was over")
	}
	if s.roll(w, evening.UnixNano(), m); s.wait(w, 1500) != 0 {
		t.Errorf("after it %v more", time.Duration(s.wait(w, 1500)))
	}
}

// A stock is used up once, whatever is given back late, and is there again when its time is over.
func TestStock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMeter(MeterSpec{Dimension: TreeTokens, Kind: Stock, Limit: rapid.Int64Range(1, 1000).Draw(t, "limit"), Window: time.Minute})
		x := &meterRun{t: t, m: m, now: 1}
		x.s = newMeterState(x.now, m)
		began := int64(-1) // of this life
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			n := len(x.history)
			x.act(0)
			if len(x.history) == n {
				continue
			}
			last := x.history[n]
			if began < 0 || last.at >= began+m.rate.window {
				began = last.at
			}
			sum := int64(0)
			for _, h := range x.history {
				if h.at >= began {
					sum += h.counts
				}
			}
			if sum > m.rate.limit {
				t.Fatalf("%d in one life, the stock is %d", sum, m.rate.limit)
			}
		}
	})
}

// act is step for meters that must be rolled before they are asked.
func (x *meterRun) act(wall int64) {
	x.now += rapid.OneOf(rapid.Int64Range(1, 1e9), rapid.Int64Range(1, 40e9)).Draw(x.t, "wait")
	x.s.roll(x.now, wall, x.m)
	n := rapid.Int64Range(1, x.m.rate.limit).Draw(x.t, "n")
	if x.s.wait(x.now, n) == 0 {
		x.s.take(x.now, n)
		x.history = append(x.history, taken{x.now, n, n, true})
		return
	}
	for i := range x.history {
		if h := &x.history[i]; h.open && rapid.Bool().Draw(x.t, "settle") {
			h.open, h.counts = false, rapid.Int64Range(0, h.reserved).Draw(x.t, "actual")
			x.s.settle(h.at, x.now, h.reserved, h.counts)
			return
		}
	}
}

// With sub-windows 600 requests a minute are 10 in any second and 100 in any 10 s; tokens have none.
func TestSubwindows(t *testing.T) {
	spec := MeterSpec{Dimension: RPM, Kind: Subwindows, Limit: 600, BurstShare: Whole}
	l := NewLimit(Enforce, 0, spec.Meters()...)
	if n := len((MeterSpec{Dimension: TPM, Kind: Subwindows, Limit: 600}).Meters()); len(l.Meters) != 3 || n != 1 {
		t.Fatalf("%d meters for requests, %d for tokens", len(l.Meters), n)
	}
	var r record
	var spare record
	r.init(0, 1, l)
	var history []taken
	for now := int64(1); now < 130e9; now += 7e6 {
		r.fit(now, 0, 0, l, &spare)
		if ok := r.meters[0].wait(now, 1) == 0 && r.meters[1].wait(now, 1) == 0 && r.meters[2].wait(now, 1) == 0; ok {
			history = append(history, taken{at: r.take(now, &Cost{Requests: 1}), counts: 1})
		}
	}
	for _, row := range []struct{ window, most int64 }{{1e9, 10}, {10e9, 100}, {60e9, 600}} {
		if n := mostInWindow(history, row.window); n > row.most || n < row.most*95/100 {
			t.Errorf("%d in a window of %v, the limit is %d", n, time.Duration(row.window), row.most)
		}
	}
}
