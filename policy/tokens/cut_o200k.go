// SPDX-License-Identifier: Apache-2.0

package tokens

// cutO200k returns the end of the piece at i, as the pattern of o200k_base cuts it:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func cutO200k(s string, i int) int {
	c, n := class(s, i)
	next := i + n
	if c&classLetter != 0 {
		end, _ := word(s, i)
		return end + contraction(s, end)
	}
	if c&classNumber != 0 {
		return digits(s, next)
	}
	var d uint8
	if next < len(s) {
		d, _ = class(s, next)
	}
	switch {
	case c&classLineEnd == 0 && d&(classUpper|classLower) != 0:
		end, capitals := word(s, next)
		if capitals && c&classMark != 0 {
			return next // a mark before capitals only: the first alternative matches the mark alone
		}
		return end + contraction(s, end)
	case c&classMark != 0:
		return next + contraction(s, next)
	case c&classSpace == 0, s[i] == ' ' && d&classSign != 0:
		return signsO200k(s, next)
	}
	return blanks(s, i, false)
}

// word returns the end of the two runs at i. capitals: only the second alternative matches, because nothing in the first run
// may also begin the second.
func word(s string, i int) (end int, capitals bool) {
	both := -1 // where the last character of the first run ends that may also begin the second
	for i < len(s) {
		c, n := class(s, i)
		if c&classUpper == 0 {
			if c&classLower == 0 {
				break
			}
			return span(s, i+n, classLower), false
		}
		i += n
		if c&classLower != 0 {
			both = i
		}
	}
	if both >= 0 && both < i {
		return both, false // only capitals follow it: the first run gives them back
	}
	return i, both < 0
}

func signsO200k(s string, i int) int {
	i = span(s, i, classSign)
	for i < len(s) && (s[i] == '\n' || s[i] == '\r' || s[i] == '/') {
		i++
	}
	return i
}
