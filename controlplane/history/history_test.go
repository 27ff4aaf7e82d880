// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever comes and goes, a ring says what a list of all samples says.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples, most := rapid.IntRange(1, 6).Draw(t, "samples"), rapid.IntRange(1, 4).Draw(t, "most")
		r := New(samples, most)
		var all []map[string]Number
		start := time.UnixMilli(1_000_000)
		total := map[string]Number{}
		for i := range rapid.IntRange(0, 20).Draw(t, "n") {
			sample := map[string]Number{}
			for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.ID).Draw(t, "names") {
				total[name] += Number(rapid.IntRange(0, 9).Draw(t, "more"))
				if rapid.IntRange(0, 9).Draw(t, "again") == 0 {
					total[name] = 0
				}
				sample[name] = total[name]
			}
			all = append(all, sample)
			r.Add(start.Add(time.Duration(i)*time.Second), sample)
		}
		kept := all[max(len(all)-samples, 0):]
		if got := len(r.Times()); got != len(kept) {
			t.Fatalf("%d times, want %d", got, len(kept))
		}
		if len(r.series) > most {
			t.Fatalf("%d series, at most %d", len(r.series), most)
		}
		if most < 3 {
			return // who came too late is not there
		}
		for _, name := range []string{"a", "b", "c"} {
			checkSeries(t, r, name, kept)
		}
		since := rapid.IntRange(-1, 20).Draw(t, "since")
		for _, name := range []string{"a", "b", "c"} {
			want := grown(all, kept, name, since)
			if got := r.Grown(name, start.Add(time.Duration(since)*time.Second)); got.Known() != want.Known() || want.Known() && got != want {
				t.Fatalf("%s has grown by %v, want %v", name, got, want)
			}
		}
	})
}

func checkSeries(t *rapid.T, r *Ring, name string, kept []map[string]Number) {
	some := false
	for _, k := range kept {
		_, ok := k[name]
		some = some || ok
	}
	got := r.Read(name)
	if !some && got != nil || some && len(got) != len(kept) {
		t.Fatalf("%s: %v of %v", name, got, kept)
	}
	for i, v := range got {
		want, ok := kept[i][name]
		if v.Known() != ok || ok && v != want {
			t.Fatalf("%s: %v of %v", name, got, kept)
		}
	}
}

// grown is what Grown says, from the samples themselves.
func grown(all, kept []map[string]Number, name string, since int) Number {
	first := len(all) - len(kept)
	var values []Number // those that are known
	var at []int
	for i, k := range kept {
		if v, ok := k[name]; ok {
			values, at = append(values, v), append(at, first+i)
		}
	}
	if len(values) == 0 {
		return Unknown
	}
	sum := Number(0)
	for i, v := range values {
		before := Number(0)
		switch {
		case i > 0:
			before = values[i-1]
		case at[0] == first:
			before = v // what was before that is not known
		}
		if v < before {
			before = 0
		}
		if at[i] > since {
			sum += v - before
		}
	}
	return sum
}

func TestNumber(t *testing.T) {
	b, err := json.Marshal([]Number{1.23456, Unknown, 1e12, 0})
	if want := "[1.235,null,1000000000000,0]"; err != nil || string(b) != want {
		t.Errorf("got %s, %v", b, err)
	}
	var back []Number
	if err := json.Unmarshal(b, &back); err != nil || fmt.Sprint(back) != "[1.235 NaN 1e+12 0]" {
		t.Errorf("got %v, %v", back, err)
	}
}
