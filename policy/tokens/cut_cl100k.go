// SPDX-License-Identifier: Apache-2.0

package tokens

// cutCl100k returns the end of the piece at i, as the pattern of cl100k_base cuts it:
//
//	'(?i:[sdmt]|ll|ve|re)
//	[^\r\n\p{L}\p{N}]?+\p{L}++
//	\p{N}{1,3}+
//	 ?[^\s\p{L}\p{N}]++[\r\n]*+
//	\s++$
//	\s*[\r\n]
//	\s+(?!\S)
//	\s
func cutCl100k(s string, i int) int {
	if n := contraction(s, i); n != 0 {
		return i + n
	}
	c, n := class(s, i)
	next := i + n
	if c&classLetter != 0 {
		return span(s, next, classLetter)
	}
	if c&classNumber != 0 {
		return digits(s, next)
	}
	var d uint8
	if next < len(s) {
		d, n = class(s, next)
	}
	switch {
	case c&classLineEnd == 0 && d&classLetter != 0:
		return span(s, next+n, classLetter)
	case c&classSpace == 0, s[i] == ' ' && d&classSign != 0:
		return signsCl100k(s, next)
	}
	return blanks(s, i, true)
}

func signsCl100k(s string, i int) int {
	i = span(s, i, classSign)
	for i < len(s) && (s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}
