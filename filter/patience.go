// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"time"
)

// patience is how long a stream may wait: what its class allows, and no longer than its caller does, less a tenth, for the call
// itself takes time too.
func (s *Stream) patience(class time.Duration) time.Duration {
	least := class
	for _, h := range [...]struct {
		name string
		read func(string) (time.Duration, bool)
	}{
		{"x-stainless-timeout", seconds}, {"x-stainless-read-timeout", seconds}, {"x-envoy-expected-rq-timeout-ms", milliseconds}, {"grpc-timeout", grpcTimeout},
		{"x-weir-deadline", duration},
	} {
		if value := s.header(h.name); value != "" {
			if d, ok := h.read(value); ok {
				least = min(least, d-d/10)
			}
		}
	}
	return max(least, 0)
}

// maxTimeout is what longer timeouts are taken for.
const maxTimeout = 24 * time.Hour

func seconds(s string) (time.Duration, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f > 0) {
		return 0, false
	}
	return time.Duration(min(f, maxTimeout.Seconds()) * float64(time.Second)), true
}

func milliseconds(s string) (time.Duration, bool) {
	n, err := strconv.ParseUint(s, 10, 62)
	return time.Duration(min(n, uint64(maxTimeout/time.Millisecond))) * time.Millisecond, err == nil && n > 0
}

// duration reads 2s, 1500ms or a number of seconds.
func duration(s string) (time.Duration, bool) {
	if d, err := time.ParseDuration(s); err == nil {
		return min(d, maxTimeout), d > 0
	}
	return seconds(s)
}

// grpcTimeout reads up to eight digits and a unit (gRPC over HTTP/2, Timeout).
func grpcTimeout(s string) (time.Duration, bool) {
	if len(s) < 2 || len(s) > 9 {
		return 0, false
	}
	unit, ok := map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': 1}[s[len(s)-1]]
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	return min(time.Duration(n), maxTimeout/max(unit, 1)) * unit, ok && err == nil && n > 0
}
