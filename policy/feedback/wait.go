// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"math"
	"strconv"
	"strings"
)

// MaxWait bounds every wait that is believed, in ns: 31 days, the longest reset that a provider has (a month's quota).
const MaxWait = 31 * day

// parseDecimal reads a number without a sign as ns, unit ns each, rounded up, at most MaxWait. It takes the whole string or
// nothing: a parser of prefixes makes 2030 seconds of the year in a date (OmniRoute#13321) and 500 s of 500ms.
func parseDecimal(s string, unit int64) (int64, bool) {
	if s == "" || !isDigit(s[0]) || len(s) > 400 {
		return 0, false
	}
	total, i := int64(0), 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		total = min(total*10+int64(s[i]-'0'), math.MaxInt64/20)
	}
	total = satMul(total, unit)
	if i < len(s) && s[i] == '.' {
		part, scale, finer := int64(0), int64(1), int64(0)
		for i++; i < len(s) && isDigit(s[i]); i++ {
			if scale < 1e9 {
				part, scale = part*10+int64(s[i]-'0'), scale*10
			} else if s[i] != '0' {
				finer = 1
			}
		}
		total = min(total, MaxWait) + mulDivUp(part, unit, scale) + finer
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		return parseExponent(s, unit)
	}
	return min(total, MaxWait), i == len(s)
}

func parseExponent(s string, unit int64) (int64, bool) {
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 1) || f < 0 {
		return 0, false
	}
	return int64(math.Ceil(min(f*float64(unit), float64(MaxWait)))), true
}

// satMul is a*b for a >= 0 and b > 0, at most MaxWait.
func satMul(a, b int64) int64 {
	if a > MaxWait/b {
		return MaxWait
	}
	return a * b
}

// mulDivUp is ceil(a*b/c) for a, b < 1e18 whose product is; used with a < c <= 1e9.
func mulDivUp(a, b, c int64) int64 {
	whole, rest := b/c, b%c
	return a*whole + (a*rest+c-1)/c
}

var units = [...]struct {
	name string
	ns   int64
}{{"ms", 1e6}, {"us", 1e3}, {"µs", 1e3}, {"μs", 1e3}, {"ns", 1}, {"s", second}, {"m", minute}, {"h", hour}, {"d", day}}

// parseDuration reads 1s, 6m0s, 120ms, 1h2m3.5s.
func parseDuration(s string) (int64, bool) {
	if s == "" || len(s) > 64 {
		return 0, false
	}
	total := int64(0)
	for s != "" {
		i := 0
		for i < len(s) && (isDigit(s[i]) || s[i] == '.') {
			i++
		}
		unit, length := unitOf(s[i:])
		n, ok := parseDecimal(s[:i], max(unit, 1))
		if !ok || unit == 0 {
			return 0, false
		}
		total = min(total+n, MaxWait)
		s = s[i+length:]
	}
	return total, true
}

func unitOf(s string) (ns int64, length int) {
	for _, u := range units {
		if strings.HasPrefix(s, u.name) {
			return u.ns, len(u.name)
		}
	}
	return 0, 0
}
