// SPDX-License-Identifier: Apache-2.0

package tokens

// cutMistral returns the end of the piece at i, as the pattern of tekken cuts it: that of o200k_base without contractions, and
// each digit for itself.
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*
//	\p{N}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func cutMistral(s string, i int) int {
	c, n := class(s, i)
	next := i + n
	if c&classLetter != 0 {
		end, _ := word(s, i)
		return end
	}
	if c&classNumber != 0 {
		return next
	}
	var d uint8
	if next < len(s) {
		d, _ = class(s, next)
	}
	switch {
	case c&classLineEnd == 0 && d&(classUpper|classLower) != 0:
		end, capitals := word(s, next)
		if capitals && c&classMark != 0 {
			return next
		}
		return end
	case c&classMark != 0:
		return next
	case c&classSpace == 0, s[i] == ' ' && d&classSign != 0:
		return signsO200k(s, next)
	}
	return blanks(s, i, false)
}
