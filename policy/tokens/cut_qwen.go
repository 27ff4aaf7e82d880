// SPDX-License-Identifier: Apache-2.0

package tokens

// cutQwen returns the end of the piece at i, as the pattern of Qwen cuts it: nearly as that of cl100k_base, but each digit for
// itself, and white space at the end of the text as elsewhere.
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func cutQwen(s string, i int) int {
	if n := contraction(s, i); n != 0 {
		return i + n
	}
	c, n := class(s, i)
	next := i + n
	if c&classLetter != 0 {
		return span(s, next, classLetter)
	}
	if c&classNumber != 0 {
		return next
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
	return blanks(s, i, false)
}
