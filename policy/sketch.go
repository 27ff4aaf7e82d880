// SPDX-License-Identifier: Apache-2.0

package policy

import "unsafe"

// A sketch is what was learned of one number of one model: how often it fell into each of a fixed row of buckets. It is one
// value of shared data, of a fixed size, changed by compare-and-swap like a [record]. The newer half weighs as much as
// all before it, so a change of the number is learned in as many answers as were needed first.
type sketch struct {
	layout uint32
	total  uint32 // weight in all buckets
	key    uint64
	at     int64 // ns: when it last learned
	counts [sketchBuckets]uint16
}

const (
	sketchLayout  = 0x77655001 // changes with every change of the struct
	sketchBuckets = 128
	sketchMost    = 1024 // weight: beyond it all counts are halved
	sketchSize    = int(unsafe.Sizeof(sketch{}))
)

// sketchOf gives the sketch in a value; nil if it is none of this layout.
func sketchOf(value []byte) *sketch {
	if len(value) != sketchSize {
		return nil
	}
	s := (*sketch)(unsafe.Pointer(unsafe.SliceData(value)))
	if s.layout != sketchLayout {
		return nil
	}
	return s
}

// add counts a number that fell into bucket b, which may be beyond the ends.
func (s *sketch) add(b int, weight uint16) {
	if s.total >= sketchMost {
		s.total = 0
		for i := range s.counts {
			s.counts[i] /= 2
			s.total += uint32(s.counts[i])
		}
	}
	s.counts[min(max(b, 0), sketchBuckets-1)] += weight
	s.total += uint32(weight)
}

// quantile gives where, in buckets, the share q of the weight ends: within a bucket as if it were spread evenly.
func (s *sketch) quantile(q float64) float64 {
	want := q * float64(s.total)
	for b, n := range s.counts {
		if c := float64(n); want <= c && c > 0 {
			return float64(b) + want/c
		} else {
			want -= c
		}
	}
	return sketchBuckets
}

// middle gives the mean of what lies near to the median, in buckets: as exact as a mean, and as hard to move as a median.
func (s *sketch) middle() float64 {
	const near = 4
	at := s.quantile(0.5)
	sum, weight := 0.0, 0.0
	for b := max(int(at)-near, 0); b <= min(int(at)+near, sketchBuckets-1); b++ {
		sum += float64(s.counts[b]) * (float64(b) + 0.5)
		weight += float64(s.counts[b])
	}
	if weight == 0 {
		return at
	}
	return sum / weight
}
