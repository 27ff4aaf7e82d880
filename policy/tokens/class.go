// SPDX-License-Identifier: Apache-2.0

package tokens

// What the published patterns ask of a character; classes.go has these bits for all characters.
const (
	classUpper   = 1 << iota // Lu Lt Lm Lo M: may stand in the first run of an o200k word
	classLower               // Ll Lm Lo M: may stand in the second run
	classNumber              // N
	classSpace               // \s
	classLineEnd             // CR, LF
	classMark                // M
	classLetter              // L
	classSign                // [^\s\p{L}\p{N}], marks among them
)

// class gives the class and the length of the character at i. s is valid UTF-8 here and below.
func class(s string, i int) (uint8, int) {
	if b := s[i]; b < 0x80 {
		return classBlocks[b], 1 // classIndex begins with 0, 1
	}
	return classWide(s, i)
}

// classWide is class for characters beyond ASCII. It puts the row of 64 characters together from the bytes themselves.
func classWide(s string, i int) (uint8, int) {
	b := s[i]
	if b < 0xE0 {
		return classBlocks[uint(classIndex[b&31])<<6|uint(s[i+1]&63)], 2
	}
	if b < 0xF0 {
		row := uint(b&15)<<6 | uint(s[i+1]&63)
		return classBlocks[uint(classIndex[row])<<6|uint(s[i+2]&63)], 3
	}
	row := uint(b&7)<<12 | uint(s[i+1]&63)<<6 | uint(s[i+2]&63)
	if row < uint(len(classIndex)) {
		return classBlocks[uint(classIndex[row])<<6|uint(s[i+3]&63)], 4
	}
	return classFar(rune(row<<6 | uint(s[i+3]&63))), 4
}

// classFar is class beyond the index, where all are ideographs or signs, but the variation selectors U+E0100 to U+E01EF.
func classFar(r rune) uint8 {
	if r >= 0xE0100 && r < 0xE01F0 {
		return classUpper | classLower | classMark | classSign
	}
	far := uint8(classSign)
	for _, begin := range farIdeographs {
		if r < begin {
			break
		}
		far ^= classSign | classUpper | classLower | classLetter
	}
	return far
}

// span returns the end of the run of characters at i that have one of these classes.
func span(s string, i int, classes uint8) int {
	for i < len(s) {
		c, n := class(s, i)
		if c&classes == 0 {
			break
		}
		i += n
	}
	return i
}
