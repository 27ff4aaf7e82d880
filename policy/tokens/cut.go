// SPDX-License-Identifier: Apache-2.0

package tokens

// The two patterns cut text in nearly the same way; this file has what they share. All functions take the place where
// a run begins (or goes on) and return its end.

// contraction gives the length of 's 't 're 've 'm 'll 'd at i, in either case, or 0; U+017F is a small s, too.
func contraction(s string, i int) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return 0
	}
	a := s[i+1] | 0x20
	if a == 's' || a == 't' || a == 'm' || a == 'd' {
		return 2
	}
	if i+2 < len(s) {
		b := s[i+2] | 0x20
		if a == 'r' && b == 'e' || a == 'v' && b == 'e' || a == 'l' && b == 'l' || s[i+1] == 0xC5 && s[i+2] == 0xBF {
			return 3
		}
	}
	return 0
}

// digits takes up to two digits more.
func digits(s string, i int) int {
	for k := 0; k < 2 && i < len(s); k++ {
		c, n := class(s, i)
		if c&classNumber == 0 {
			break
		}
		i += n
	}
	return i
}

// blanks takes white space: up to its last line end or, without one, all but its last character if something follows.
// toEnd: white space that reaches the end of the text is taken whole, line ends or not.
func blanks(s string, i int, toEnd bool) int {
	end, last, lineEnd := i, i, 0
	for end < len(s) {
		c, n := class(s, end)
		if c&classSpace == 0 {
			break
		}
		last = end
		end += n
		if c&classLineEnd != 0 {
			lineEnd = end
		}
	}
	switch {
	case end == len(s) && toEnd:
		return end
	case lineEnd > 0:
		return lineEnd
	case end == len(s) || last == i:
		return end
	}
	return last
}
