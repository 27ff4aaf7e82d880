// SPDX-License-Identifier: Apache-2.0

package feedback

// Numbers from here on are no seconds from now but a time of day: 1e9 s are 32 years. From 1e11 on they are ms, as OpenRouter
// sends them.
const (
	epochSeconds = 1_000_000_000
	epochMillis  = 100_000_000_000
)

// parseReset reads when a limit resets, in ns from now (unix ns, the provider's): a duration, seconds from now, a unix time in
// s or ms, RFC 3339 or an HTTP-date. What lies in the past is 0. A value that is none of these is not there.
func parseReset(s string, now int64) (int64, bool) {
	if n, ok := parseEpoch(s); ok {
		return until(n, now), true
	}
	if n, ok := parseDecimal(s, second); ok {
		return n, true
	}
	if n, ok := parseDuration(s); ok {
		return n, true
	}
	if t, ok := parseTimestamp(s); ok {
		return until(t, now), true
	}
	if t, ok := parseHTTPDate(s); ok {
		return until(t, now), true
	}
	return 0, false
}

// parseEpoch reads 10 to 13 digits as a unix time in ns; a fraction is rounded up to a second.
func parseEpoch(s string) (int64, bool) {
	i, n := 0, int64(0)
	for ; i < len(s) && i < 13 && isDigit(s[i]); i++ {
		n = n*10 + int64(s[i]-'0')
	}
	rest := s[i:]
	if n < epochSeconds || rest != "" && (rest[0] != '.' || !allDigits(rest[1:])) {
		return 0, false
	}
	if rest != "" {
		n++
	}
	switch {
	case n >= epochMillis && n < 5_000_000_000_000:
		return n * 1e6, true
	case n < 5_000_000_000: // the year 2128
		return n * second, true
	}
	return 0, false
}

func allDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

func until(t, now int64) int64 {
	if t <= now {
		return 0
	}
	if t-max(now, 0) > MaxWait {
		return MaxWait
	}
	return t - max(now, 0)
}

// retryAfter is what the answer's headers say of a retry. The forms in ms are the exact ones, so they come first, as in the
// SDKs that know them.
func (r *Reply) retryAfter() (wait int64, told bool) {
	for _, name := range [...]string{"retry-after-ms", "x-ms-retry-after-ms"} {
		if n, ok := parseDecimal(r.header(name), 1e6); ok {
			return n, true
		}
	}
	v := r.header("retry-after")
	if n, ok := parseDecimal(v, second); ok {
		return n, true
	}
	if t, ok := parseHTTPDate(v); ok {
		return until(t, r.now()), true
	}
	if n, ok := parseDuration(v); ok {
		return n, true
	}
	if t, ok := parseTimestamp(v); ok {
		return until(t, r.now()), true
	}
	return 0, false
}
