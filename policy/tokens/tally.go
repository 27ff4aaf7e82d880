// SPDX-License-Identifier: Apache-2.0

package tokens

import "math/bits"

// A tally is what an estimate knows of a text: how many tokens of o200k_base its pieces are, by the class of the piece, and
// how long they are where that says more. Tokenizers differ by class: most cut English words alike, but some spend a token
// on each digit, and scripts that one knows well are single bytes to another.
type tally [numFeatures]int32

// feature is a place in a tally. Tokens are those of o200k_base.
type feature uint8

const (
	featSpaceWord    feature = iota // words of ASCII letters that are one token, with the space before them
	featSpaceCapital                // the same, beginning with a capital
	featWord                        // without a space
	featCapital                     // without a space, beginning with a capital
	featSignWord                    // a sign and the word behind it
	featWholeBytes                  // the bytes of all these
	featRare                        // and how rare they are: the sum of the lengths in bits of their ranks above rareFrom
	featNew                         // and how many of them cl100k_base does not have
	featParts                       // tokens of words that are several tokens
	featCapitalParts                // the same, beginning with a capital
	featPartBytes                   // and their bytes
	featCaps                        // tokens of words with capitals only
	featCapBytes                    // and their bytes
	featNumber                      // runs of up to three digits
	featDigit                       // the digits in them
	featSign                        // single signs
	featSigns                       // tokens of several signs
	featSignBytes                   // and their bytes
	featSignLines                   // of these pieces, those with line ends
	featBlank                       // runs of spaces and tabs, tokens
	featLines                       // white space with line ends, tokens
	featForeign                     // words that are one token, by how many words are not ASCII
	featForeignBytes                // and of the bytes of all words
	featWide                        // words with characters beyond ASCII
	featScripts                     // for each script: tokens of its words, and its characters

	numFeatures = featScripts + 2*feature(numScripts)
)

// rareFrom: words of lower ranks are in every vocabulary.
const rareFrom = 4096

// tallyUp is count, but writes down what it counts by class.
func (c *Counter) tallyUp(s string, t *tally) {
	for i := 0; i < len(s); {
		if i+8 <= len(s) {
			w := load8(s, i)
			n := c.rules.peek(w)
			j := i + int(n%oneToken)
			if n == goesOn {
				j = c.rules.wordEnd(s, i+8)
			}
			if j > i {
				t.ascii(c, w, s, i, j)
				i = j
				continue
			}
		}
		j := cutO200k(s, i)
		if k := firstWide(s, i, j); k < j {
			t.wide(s[k:j], int32(c.piece(s, i, j)))
		} else {
			t.ascii(c, loadUpTo8(s, i, min(j-i, 8)), s, i, j)
		}
		i = j
	}
}

func firstWide(s string, i, j int) int {
	for i < j && s[i] < 0x80 {
		i++
	}
	return i
}

// ascii takes the piece s[i:j], which has ASCII characters only and begins with w.
func (t *tally) ascii(c *Counter, w uint64, s string, i, j int) {
	kinds, n := &c.rules.kinds, j-i
	kind := kinds[byte(w)]
	switch {
	case kind == kindDigit:
		t[featNumber]++
		t[featDigit] += int32(n)
		return
	case kind == kindSign && n == 1:
		t[featSign]++
		return
	}
	var h uint64
	if n <= 8 {
		h = hashShort(first(w, uint(n)), uint(n))
	} else {
		h = hashLong(s, i, j)
	}
	tokens, entry := int32(1), c.view.entry(h)
	if n > wholeMax || c.view.rankIn(entry, h) == c.view.noRank {
		tokens = int32(c.missed(s, i, j, h))
	}
	letter, lead := kind, kindOther
	if kind >= kindSign {
		letter, lead = kinds[byte(w>>8)], kind
	}
	if letter > kindCapital || n == 1 && lead != kindOther {
		t.signs(kind == kindSign || letter == kindSign && n > 1, kinds[s[j-1]] == kindLine, int32(n), tokens)
		return
	}
	if letter == kindCapital && n > 1 && kinds[s[j-1]] == kindCapital && kinds[s[j-2]] == kindCapital {
		t[featCaps] += tokens
		t[featCapBytes] += int32(n)
		return
	}
	if tokens > 1 {
		t[featParts+feature(letter-kindSmall)] += tokens
		t[featPartBytes] += int32(n)
		return
	}
	rank, missing := ranksOf(entry)
	t[wholeFeatures[lead][letter]]++
	t[featWholeBytes] += int32(n)
	t[featRare] += int32(bits.Len32(rank / rareFrom))
	t[featNew] += int32(missing)
}

// wholeFeatures are the features of words that are one token, by what leads the word, and by its first letter.
var wholeFeatures = [numKinds][kindCapital + 1]feature{
	kindOther: {kindSmall: featWord, kindCapital: featCapital},
	kindSpace: {kindSmall: featSpaceWord, kindCapital: featSpaceCapital},
	kindSign:  {kindSmall: featSignWord, kindCapital: featSignWord},
}

// signs takes several signs, or white space; lines: with line ends.
func (t *tally) signs(signs, lines bool, n, tokens int32) {
	switch {
	case !signs && lines:
		t[featLines] += tokens
	case !signs:
		t[featBlank] += tokens
	default:
		t[featSigns] += tokens
		t[featSignBytes] += n
		if lines {
			t[featSignLines]++
		}
	}
}

// wide takes a piece from its first character beyond ASCII on.
func (t *tally) wide(p string, tokens int32) {
	last := scriptSymbol
	for k := 0; k < len(p); {
		if p[k] < 0x80 {
			k++
			continue
		}
		var n int
		last, n = scriptAt(p, k)
		t[featScripts+2*feature(last)+1]++
		k += n
	}
	t[featScripts+2*feature(last)] += tokens
	t[featWide]++
}

// foreignMost is how many of 1024 words beyond ASCII make a text foreign altogether: in German one in ten has an umlaut.
const foreignMost = 128

// relate fills in what depends on the rest: a word of ASCII letters is less often a token of its own for others if it stands
// in a text of another language, which the words around it show.
func (t *tally) relate() {
	whole, parts := t[featSpaceWord]+t[featSpaceCapital]+t[featWord]+t[featCapital]+t[featSignWord], t[featParts]+t[featCapitalParts]
	others := t[featScripts+2*feature(scriptLatin)] + t[featScripts+2*feature(scriptViet)] + t[featScripts+2*feature(scriptMark)]
	if others == 0 {
		return
	}
	share := min(int64(others)*1024/int64(whole+parts+others), foreignMost)
	t[featForeign] = int32(int64(whole) * share / foreignMost)
	t[featForeignBytes] = int32(int64(t[featPartBytes]+t[featWholeBytes]) * share / foreignMost)
}
