// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"strings"
	"time"
)

// Dates are read without time.Parse, which is 50 KB of WebAssembly. In a layout w and W stand for a day of the week, short and
// in full, b for a month's name, Y, m, d, H, n (minutes) and S for digits, y for two digits of the year,
// e for a day that may have a blank in place of a zero; all else stands for itself.

// parseHTTPDate reads the three forms of RFC 9110 section 5.6.7, and the first with an offset as in mail, as unix ns.
func parseHTTPDate(s string) (int64, bool) {
	if len(s) < 20 || len(s) > 40 {
		return 0, false
	}
	for _, layout := range [...]string{"w, d b Y H:n:S GMT", "W, d-b-y H:n:S GMT", "w b e H:n:S Y"} {
		if t, rest, ok := scanDate(layout, s); ok && rest == "" {
			return unixNano(t, 0)
		}
	}
	t, rest, ok := scanDate("w, d b Y H:n:S ", s)
	if !ok || len(rest) != len("+0000") {
		return 0, false
	}
	return zoned(t, 0, rest[:3]+":"+rest[3:])
}

// parseTimestamp reads RFC 3339 as unix ns.
func parseTimestamp(s string) (int64, bool) {
	t, rest, ok := scanDate("Y-m-dTH:n:S", s)
	if !ok || len(s) > 40 {
		return 0, false
	}
	part, scale := int64(0), second
	if strings.HasPrefix(rest, ".") {
		for rest = rest[1:]; rest != "" && isDigit(rest[0]); rest = rest[1:] {
			scale /= 10
			part += int64(rest[0]-'0') * scale
		}
		if scale == second {
			return 0, false
		}
	}
	return zoned(t, part, rest)
}

// zoned gives the time of a date and a part of a second, which are those of a zone: Z, or an offset such as -08:00.
func zoned(t time.Time, part int64, zone string) (int64, bool) {
	if zone == "Z" {
		return unixNano(t, part)
	}
	if len(zone) != len("+00:00") || zone[0] != '+' && zone[0] != '-' || zone[3] != ':' {
		return 0, false
	}
	h, ok := digits(zone[1:3])
	m, ok2 := digits(zone[4:])
	east := int64(h)*hour + int64(m)*minute
	if zone[0] == '-' {
		east = -east
	}
	if !ok || !ok2 || h > 23 || m > 59 {
		return 0, false
	}
	return unixNano(t, part-east)
}

// unixNano refuses years that ns cannot tell.
func unixNano(t time.Time, more int64) (int64, bool) {
	if y := t.Year(); y < 1970 || y > 2200 {
		return 0, false
	}
	return t.UnixNano() + more, true
}

// scanDate reads the date that s begins with, as if it were UTC.
func scanDate(layout, s string) (t time.Time, rest string, ok bool) {
	var is ['y' + 1]int // by the layout's letters
	for _, c := range []byte(layout) {
		n, length := scanPart(c, s)
		if length == 0 {
			return t, "", false
		}
		is[c], s = n, s[length:]
	}
	month, day := time.Month(is['m']+is['b']), is['d']+is['e']
	t = time.Date(is['Y']+is['y'], month, day, is['H'], is['n'], is['S'], 0, time.UTC)
	return t, s, t.Month() == month && t.Day() == day && is['H'] < 24 && is['n'] < 60 && is['S'] < 60
}

// scanPart reads what a letter of a layout stands for, and says how long it is: 0 if it is not there.
func scanPart(c byte, s string) (n, length int) {
	switch c {
	case 'w', 'W':
		return nameIn(weekdays[:], s, c == 'w')
	case 'b':
		return nameIn(months[:], s, true)
	case 'e':
		if length = 2; strings.HasPrefix(s, " ") {
			s = "0" + s[1:]
		}
	case 'Y':
		length = 4
	case 'y', 'm', 'd', 'H', 'n', 'S':
		length = 2
	default:
		if s == "" || s[0] != c {
			return 0, 0
		}
		return 0, 1
	}
	n, ok := digits(s[:min(length, len(s))])
	if !ok || len(s) < length {
		return 0, 0
	}
	if c == 'y' {
		n += 1900
		if n < 1969 { // as time.Parse has it, and C
			n += 100
		}
	}
	return n, length
}

var (
	weekdays = [...]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
	months   = [...]string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
)

// nameIn finds which name s begins with, counted from 1.
func nameIn(names []string, s string, short bool) (n, length int) {
	for i, name := range names {
		if short {
			name = name[:3]
		}
		if hasPrefixFold(s, name) {
			return i + 1, len(name)
		}
	}
	return 0, 0
}

func digits(s string) (n int, ok bool) {
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n, allDigits(s)
}
