// SPDX-License-Identifier: Apache-2.0

// Package history remembers the last minutes of some numbers, in memory, in bounds that are known when it begins.
package history

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A Number may be unknown. As JSON that is null.
type Number float64

// Unknown is no number.
var Unknown = Number(math.NaN())

// Known says whether it is one.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) }

// MarshalJSON writes three digits after the point at most.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(float64(n)*1000)/1000, 'f', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Unknown
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	*n = Number(f)
	return err
}

// A Ring remembers samples. Its methods may be called by anybody at any time.
type Ring struct {
	samples, most int

	mu     sync.Mutex
	times  []time.Time // the oldest first
	series map[string][]Number
}

// New makes a ring of so many samples of no more than so many numbers.
func New(samples, most int) *Ring {
	return &Ring{samples: samples, most: most, series: map[string][]Number{}}
}

// Add takes a sample: numbers by name. A name that is not in it is not known at that time; one that is in none of the samples
// any more is forgotten. A new name for which there is no place is left out.
func (r *Ring) Add(at time.Time, sample map[string]Number) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.times) == r.samples {
		r.times = slices.Delete(r.times, 0, 1)
		for name, s := range r.series {
			r.series[name] = slices.Delete(s, 0, 1)
		}
	}
	r.times = append(r.times, at)
	for name, s := range r.series {
		v, ok := sample[name]
		if !ok {
			v = Unknown
		}
		if s = append(s, v); !slices.ContainsFunc(s, Number.Known) {
			delete(r.series, name)
			continue
		}
		r.series[name] = s
	}
	for _, name := range slices.Sorted(maps.Keys(sample)) {
		if r.series[name] == nil && len(r.series) < r.most && sample[name].Known() {
			s := slices.Repeat([]Number{Unknown}, len(r.times))
			s[len(s)-1] = sample[name]
			r.series[name] = s
		}
	}
}

// Times are when the samples were taken, in ms since 1970, the oldest first.
func (r *Ring) Times() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	ms := make([]int64, len(r.times))
	for i, t := range r.times {
		ms[i] = t.UnixMilli()
	}
	return ms
}

// Read gives the numbers of a name, one for each of Times; nil if there are none.
func (r *Ring) Read(name string) []Number {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.series[name])
}

// Grown is by how much a number that only grows has grown since a time, as far as the ring remembers. What begins again at 0
// counts from there, and what was not there before began at 0 if the ring was. (So what was left out for want of a place, and comes
// back, counts in full once.)
func (r *Ring) Grown(name string, since time.Time) Number {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.series[name]
	if s == nil {
		return Unknown
	}
	from, sum := Number(0), Number(0)
	if s[0].Known() {
		from = s[0]
	}
	for i, v := range s {
		if !v.Known() {
			continue
		}
		if v < from {
			from = 0
		}
		if r.times[i].After(since) {
			sum += v - from
		}
		from = v
	}
	return sum
}
