// SPDX-License-Identifier: Apache-2.0

package tokens

// A tally is what an estimate knows of a text: how many tokens of o200k_base its pieces are, by the class of the piece, and
// how long they are where that says more. Tokenizers differ by class: most cut English words alike, but some spend a token
// on each digit, and scripts that one knows well are single bytes to another.
type tally [numFeatures]int32

// feature is a place in a tally. Tokens are those of o200k_base.
type feature uint8

const (
	featSpaceWord    feature = iota // words of ASCII letters that are one token, with the space before them
	featWord                        // the same without a space
	featCapital                     // the same, beginning with a capital
	featSignWord                    // a sign and the word behind it, tokens
	featParts                       // tokens of words that are several tokens
	featPartBytes                   // and their bytes
	featCaps                        // tokens of words with capitals only
	featCapBytes                    // and their bytes
	featNumber                      // runs of up to three digits
	featDigit                       // the digits in them
	featSign                        // single signs
	featSigns                       // tokens of several signs
	featSignBytes                   // and their bytes
	featBlank                       // runs of spaces and tabs, tokens
	featBlankBytes                  // and their bytes
	featLines                       // white space with line ends, tokens
	featLineBytes                   // and their bytes
	featWholeBytes                  // bytes of words that are one token
	featForeign                     // words that are one token, by how many words are not ASCII
	featForeignParts                // the same of words that are several
	featForeignBytes                // and of the bytes of all these words
	featScripts                     // for each script: tokens of its words, and its characters

	numFeatures = featScripts + 2*feature(numScripts)
)

// tallyUp is count, but writes down what it counts by class.
func (c *Counter) tallyUp(s string, t *tally) {
	for i := 0; i < len(s); {
		if i+8 <= len(s) {
			w := load8(s, i)
			switch n := c.rules.peek(w); {
			case n >= goesOn:
				if j := c.rules.wordEnd(s, i+8); j > 0 {
					t.word(&c.rules, w, j-i, c.piece(s, i, j))
					i = j
					continue
				}
			case n >= oneToken:
				n -= oneToken
				t.piece(&c.rules, s[i:i+int(n)], 1)
				i += int(n)
				continue
			case n > 0:
				tokens := 1
				if h := hashShort(first(w, n), n); c.view.rankIn(c.view.entry(h), h) == c.view.noRank {
					tokens = c.missed(s, i, i+int(n), h)
				}
				t.piece(&c.rules, s[i:i+int(n)], int32(tokens))
				i += int(n)
				continue
			}
		}
		j := cutO200k(s, i)
		tokens := 1
		if j-i > 1 {
			tokens = c.piece(s, i, j)
		}
		t.piece(&c.rules, s[i:j], int32(tokens))
		i = j
	}
}

// word takes a word of small letters and the character before it, or a run of signs, that w begins with.
func (t *tally) word(r *rules, w uint64, length, tokens int) {
	f := featWord
	switch r.kinds[byte(w)] {
	case kindSign:
		f = featSignWord
		if r.kinds[byte(w>>8)] == kindSign {
			t.signs(int32(tokens), int32(length))
			return
		}
	case kindSpace:
		f = featSpaceWord
		if r.kinds[byte(w>>8)] == kindSign {
			t.signs(int32(tokens), int32(length))
			return
		}
	case kindCapital:
		f = featCapital
	}
	if tokens > 1 {
		f = featParts
		t[featPartBytes] += int32(length)
	} else {
		t[featWholeBytes] += int32(length)
	}
	t[f] += int32(tokens)
}

func (t *tally) signs(tokens, length int32) {
	t[featSigns] += tokens
	t[featSignBytes] += length
}

// piece takes any piece.
func (t *tally) piece(r *rules, p string, tokens int32) {
	letters, digits, blanks, lines := 0, 0, 0, 0
	for k := 0; k < len(p); k++ {
		b := p[k]
		if b >= 0x80 {
			t.wide(p, k, tokens)
			return
		}
		switch r.kinds[b] {
		case kindSmall, kindCapital:
			letters++
		case kindDigit:
			digits++
		case kindSpace:
			blanks++
		case kindLine:
			lines++
		}
	}
	switch n := int32(len(p)); {
	case letters > 0:
		t.letters(r, p, tokens)
	case digits > 0:
		t[featNumber] += tokens
		t[featDigit] += int32(digits)
	case blanks+lines < len(p):
		if n == 1 {
			t[featSign]++
			return
		}
		t.signs(tokens, n)
	case lines > 0:
		t[featLines] += tokens
		t[featLineBytes] += n
	default:
		t[featBlank] += tokens
		t[featBlankBytes] += n
	}
}

// letters takes a word of ASCII letters.
func (t *tally) letters(r *rules, p string, tokens int32) {
	n := len(p)
	if n > 1 && r.kinds[p[n-1]] == kindCapital && r.kinds[p[n-2]] == kindCapital {
		t[featCaps] += tokens
		t[featCapBytes] += int32(n)
		return
	}
	w := uint64(p[0])
	if n > 1 {
		w |= uint64(p[1]) << 8
	}
	t.word(r, w, n, int(tokens))
}

// wide takes a piece with a character beyond ASCII, the first of them at k.
func (t *tally) wide(p string, k int, tokens int32) {
	last := scriptSymbol
	for _, c := range p[k:] {
		if c >= 0x80 {
			last = scriptOf(c)
			t[featScripts+2*feature(last)+1]++
		}
	}
	t[featScripts+2*feature(last)] += tokens
}

// foreignMost is how many of 1024 words beyond ASCII make a text foreign altogether: in German one in ten has an umlaut.
const foreignMost = 128

// relate fills in what depends on the rest: a word of ASCII letters is less often a token of its own for others if it stands
// in a text of another language, which the words around it show.
func (t *tally) relate() {
	whole := t[featSpaceWord] + t[featWord] + t[featCapital] + t[featSignWord]
	others := t[featScripts+2*feature(scriptLatin)] + t[featScripts+2*feature(scriptViet)] + t[featScripts+2*feature(scriptMark)]
	if others == 0 {
		return
	}
	share := min(int64(others)*1024/int64(whole+t[featParts]+others), foreignMost)
	t[featForeign] = int32(int64(whole) * share / foreignMost)
	t[featForeignParts] = int32(int64(t[featParts]) * share / foreignMost)
	t[featForeignBytes] = int32(int64(t[featPartBytes]+t[featWholeBytes]) * share / foreignMost)
}
