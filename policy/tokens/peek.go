// SPDX-License-Identifier: Apache-2.0

package tokens

import "math/bits"

// rules is how peek cuts for one encoding.
type rules struct {
	kinds [256]kind
	fold  uint64 // 0x20 in all bytes if a word takes letters of both cases alike, else 0
	// An apostrophe may begin a contraction: where a piece begins, for cl100k; behind a word, for o200k. The other of the two
	// is 0xFF, which is beyond ASCII anyway.
	quoteFirst, quoteBehind byte
	slash                   byte // what may stand among the line ends behind signs: '/', or nothing else
	oneDigit                bool // each digit is a piece
	numbersFirst            bool // numbers are cut out before all else, so white space before them is not cut
}

// kind is what a byte is for peek.
type kind uint8

const (
	kindOther   kind = iota // beyond ASCII
	kindSmall               // a letter that may go on a word
	kindCapital             // a letter that may only begin one
	kindDigit
	kindSign
	kindSpace // but line ends
	kindLine  // CR, LF
	numKinds
)

func rulesOf(e encoding) rules {
	r := rules{quoteFirst: 0xFF, quoteBehind: '\'', slash: '/'}
	folds := e == encCl100k
	if folds {
		r.quoteFirst, r.quoteBehind, r.slash = '\'', 0xFF, '\n'
		r.fold = 0x20 * ones
	}
	extra := false
	if anyLinked {
		if x := e.extra(); x != nil {
			r, folds, extra = x.rules, x.rules.fold != 0, true
		}
	}
	for b := range 128 {
		switch c := classBlocks[b]; {
		case c&classLower != 0, c&classUpper != 0 && folds:
			r.kinds[b] = kindSmall
		case c&classUpper != 0:
			r.kinds[b] = kindCapital
		case c&classNumber != 0:
			r.kinds[b] = kindDigit
		case anyLinked && extra && (b < ' ' || b == 0x7F) && c&classSign != 0: // a control is no sign for all of them
		case c&classSign != 0:
			r.kinds[b] = kindSign
		case c&classLineEnd != 0:
			r.kinds[b] = kindLine
		case c&classSpace != 0:
			r.kinds[b] = kindSpace
		}
	}
	return r
}

// What peek adds to the length of a piece, which is less than 8.
const (
	oneToken = 8  // it is a single sign or digits: always a token
	goesOn   = 16 // it is a word that goes on beyond the eight bytes
)

// peek gives the length of the piece that w begins with. It is 0 if these eight bytes are not enough to say or if they
// are none of what most text consists of: a word of ASCII letters and the character before it, digits, signs, white space.
func (r *rules) peek(w uint64) uint {
	begin := uint(0) // of the letters
	switch first := r.kinds[byte(w)]; first {
	case kindOther:
		return 0
	case kindDigit:
		return r.peekDigits(w)
	case kindLine:
		return r.peekBlanks(w)
	case kindSpace, kindSign:
		if byte(w) == r.quoteFirst {
			return 0
		}
		begin = 1
		switch second := r.kinds[byte(w>>8)]; {
		case second == kindOther:
			return 0
		case second == kindSign && (first == kindSign || byte(w) == ' '), second == kindLine && first == kindSign:
			return r.peekSigns(w)
		case second >= kindDigit && first == kindSign:
			return oneToken + 1
		case second >= kindDigit:
			return r.peekBlanks(w)
		}
	}
	small := run(within(w, 'A', 'Z'), begin)
	if small == 8 {
		return 0
	}
	n := run(within(w|r.fold, 'a', 'z'), small)
	if n == 8 {
		return goesOn
	}
	if next := byte(w >> (8 * n & 63)); next >= 0x80 || next == r.quoteBehind {
		return 0
	}
	return n
}

// peekDigits is peek where w begins with a digit. A digit beyond ASCII may follow one or two of them.
func (r *rules) peekDigits(w uint64) uint {
	n := uint(1)
	if anyLinked && r.oneDigit {
		return oneToken + 1
	}
	if r.kinds[byte(w>>8)] == kindDigit {
		n = 2
		if r.kinds[byte(w>>16)] == kindDigit {
			return oneToken + 3
		}
	}
	if byte(w>>(8*n)) >= 0x80 {
		return 0
	}
	return oneToken + n
}

// peekSigns is peek where w begins with a sign, or with a space and a sign. Line ends behind it are part of the piece.
func (r *rules) peekSigns(w uint64) uint {
	n := uint(1)
	for n < 8 && r.kinds[byte(w>>(8*n&63))] == kindSign {
		n++
	}
	if n == 8 {
		return 0
	}
	switch r.kinds[byte(w>>(8*n&63))] {
	case kindOther:
		return 0
	case kindLine:
		n = run(lineEnds8(w)|within(w, uint64(r.slash), uint64(r.slash)), n) & 7 // 0 if it goes on beyond
	}
	return n
}

// peekBlanks is peek where w begins with white space: all up to its last line end or, without one, all but its last character.
func (r *rules) peekBlanks(w uint64) uint {
	lines := lineEnds8(w)
	n := run(lines|within(w, '\t', '\r')|within(w, ' ', ' '), 0)
	if n == 8 {
		return 0
	}
	next := r.kinds[byte(w>>(8*n&63))]
	if next == kindOther || anyLinked && r.numbersFirst && next == kindDigit {
		return 0
	}
	if lines = first(lines, n); lines != 0 {
		return uint(bits.Len64(lines)) / 8
	}
	if n == 1 {
		return oneToken + 1
	}
	return n - 1
}

// lineEnds8 marks CR and LF.
func lineEnds8(w uint64) uint64 { return within(w, '\n', '\n') | within(w, '\r', '\r') }

// wordEnd returns the end of a word that goes on at i. It is 0 if that is too near to the end of s, or if a byte follows
// that needs a closer look.
func (r *rules) wordEnd(s string, i int) int {
	for i+8 <= len(s) {
		w := load8(s, i)
		n := run(within(w|r.fold, 'a', 'z'), 0)
		i += int(n)
		if n < 8 {
			if next := byte(w >> (8 * n & 63)); next >= 0x80 || next == r.quoteBehind {
				return 0
			}
			return i
		}
	}
	return 0
}
