// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// byStandard reads a date as package time does.
func byStandard(s string, layouts ...string) (int64, bool) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 1970 && t.Year() <= 2200 {
			return t.UnixNano(), true
		}
	}
	return 0, false
}

var httpDates = []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC, time.RFC1123Z}

// Every date that package time writes is read as it reads it; whatever else is read, it reads in the same way.
func TestDates(t *testing.T) {
	forms := append([]string{time.RFC3339, time.RFC3339Nano}, httpDates...)
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		layout := rapid.SampledFrom(forms).Draw(t, "layout")
		zone := time.FixedZone("", 60*rapid.IntRange(-1439, 1439).Draw(t, "east"))
		at := time.Unix(rapid.Int64Range(-1e8, 8e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).In(zone)
		s := []byte(at.Format(layout))
		plain := rapid.Bool().Draw(t, "plain")
		for !plain && rapid.Bool().Draw(t, "more") {
			i := rapid.IntRange(0, len(s)-1).Draw(t, "i")
			if c := rapid.SampledFrom([]byte("\x000123456789 -+:.TZtzJaM,")).Draw(t, "c"); c > 0 {
				s[i] = c
			} else {
				s = append(s[:i], s[i+1:]...)
			}
		}
		for _, f := range []struct {
			parse   func(string) (int64, bool)
			layouts []string
		}{{parseHTTPDate, httpDates}, {parseTimestamp, []string{time.RFC3339Nano}}} {
			got, ok := f.parse(string(s))
			want, wantOK := byStandard(string(s), f.layouts...)
			if ok && (!wantOK || got != want) || plain && ok != wantOK {
				t.Fatalf("%q: %v %v, want %v %v", s, got, ok, want, wantOK)
			}
			if ok {
				read++
			}
		}
	})
	if read == 0 {
		t.Error("no date was read")
	}
}
