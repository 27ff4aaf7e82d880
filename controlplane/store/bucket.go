// SPDX-License-Identifier: Apache-2.0

package store

import "math"

// level is what the bucket has at a time, in 1024ths; below zero it is debt.
func (s *meterState) level(now int64) int64 {
	return min(s.Burst*fine, s.Level+s.gain(now-s.At))
}

// bucketWait is the time until the bucket has n units, or for more than a burst is full: it owes the rest.
func (s *meterState) bucketWait(now, n int64) int64 {
	lack := min(n, s.Burst)*fine - s.level(now)
	if lack <= 0 {
		return 0
	}
	// From At on, as the level is reckoned, or rounding would ask for more than there is to wait for.
	need, base := min(n, s.Burst)*fine-s.Level, max(now-s.At, 0)
	w := int64(math.Ceil(float64(float64(need)*float64(s.Window))/float64(float64(s.Limit)*fine))) - base
	w = max(w, 1)
	for s.gain(base+w) < need && w < 3*s.Window {
		w += 1 + w>>40
	}
	return w + max(s.At-now, 0)
}

// bucketSettle charges d units, or gives them back: at most what a bucket would have now that had been charged right in the
// first place (RATIONALE.md, "Why does a bucket remember troughs?").
func (s *meterState) bucketSettle(at, now, d int64) {
	now = max(now, s.At)
	level := s.level(now)
	if d > 0 {
		s.At, s.Level = now, max(level-d*fine, -s.Limit*fine)
		return
	}
	back := min(-d*fine, s.leastSince(at))
	s.At, s.Level = now, min(level+back, s.Burst*fine)
	s.lower(at, -d*fine)
}

// note adds a take to the troughs: what the bucket lacked before it.
func (s *meterState) note(at, lack int64) {
	for s.N > 0 && s.Trough[s.N-1] >= lack {
		s.N--
	}
	if s.N == int64(len(s.Trough)) {
		s.join()
	}
	s.TroughAt[s.N], s.Trough[s.N] = at, lack
	s.N++
}

// join makes one of the two neighbours that are nearest by ratio, with the lower lack and the later time: refunds get less.
func (s *meterState) join() {
	best, least := int64(0), math.Inf(1)
	for i := range s.N - 1 {
		if ratio := float64(s.Trough[i+1]) / float64(s.Trough[i]); ratio < least {
			best, least = i, ratio
		}
	}
	s.Trough[best+1] = s.Trough[best]
	copy(s.TroughAt[best:], s.TroughAt[best+1:])
	copy(s.Trough[best:], s.Trough[best+1:])
	s.N--
}

// leastSince is the least that the bucket lacked at any take after the time at, or now.
func (s *meterState) leastSince(at int64) int64 {
	for i := range s.N {
		if s.TroughAt[i] > at {
			return s.Trough[i]
		}
	}
	return math.MaxInt64
}

// lower takes d off what the bucket lacked at takes after the time at, as if an earlier one had cost that much less.
func (s *meterState) lower(at, d int64) {
	n := s.N
	s.N = 0
	for i := range n {
		t, lack := s.TroughAt[i], s.Trough[i]
		if t > at {
			lack = max(lack-d, 0)
		}
		s.note(t, lack)
	}
}
