// SPDX-License-Identifier: Apache-2.0

package tokens

// script is a group of characters that a tokenizer knows well or badly together.
type script uint8

const (
	scriptSymbol script = iota // emoji, signs, and what is not listed
	scriptLatin                // letters of Europe beyond ASCII
	scriptViet                 // those that only Vietnamese has
	scriptMark                 // marks that stand apart, and the letters of phonetics
	scriptGreek                // Greek, Armenian, Georgian
	scriptCyrillic
	scriptHebrew
	scriptArabic
	scriptHindi // Devanagari
	scriptIndic // the other scripts of India
	scriptThai  // Thai, Lao, Burmese, Khmer
	scriptKana
	scriptHangul
	scriptHan
	scriptPunct // punctuation of East Asia and of typography
	numScripts
)

// scriptEnds are the last characters of the ranges that scriptAt tells apart, in order. Each range is whole rows of 16.
var scriptEnds = [...]struct {
	last   rune
	script script
}{
	{0xBF, scriptPunct}, {0x24F, scriptLatin}, {0x36F, scriptMark}, {0x3FF, scriptGreek}, {0x52F, scriptCyrillic},
	{0x58F, scriptGreek}, {0x5FF, scriptHebrew}, {0x6FF, scriptArabic}, {0x74F, scriptHebrew}, {0x77F, scriptArabic},
	{0x8FF, scriptHebrew}, {0x97F, scriptHindi}, {0xDFF, scriptIndic}, {0xEFF, scriptThai}, {0xFFF, scriptIndic},
	{0x109F, scriptThai}, {0x10FF, scriptGreek}, {0x11FF, scriptHangul}, {0x177F, scriptIndic}, {0x17FF, scriptThai},
	{0x1DFF, scriptIndic}, {0x1EFF, scriptViet}, {0x1FFF, scriptGreek}, {0x206F, scriptPunct}, {0x2FFF, scriptSymbol},
	{0x303F, scriptPunct}, {0x30FF, scriptKana}, {0x318F, scriptHangul}, {0x33FF, scriptKana}, {0x9FFF, scriptHan},
	{0xABFF, scriptIndic}, {0xD7FF, scriptHangul}, {0xF8FF, scriptSymbol}, {0xFAFF, scriptHan}, {0xFDFF, scriptArabic},
	{0xFE0F, scriptSymbol}, {0xFE6F, scriptPunct}, {0xFEFF, scriptArabic}, {0xFF5F, scriptPunct}, {0xFF9F, scriptKana},
	{0xFFFF, scriptHangul},
}

// scriptRows has the script of each row of 16 characters, as far as characters of three bytes go.
var scriptRows = func() (rows [1 << 12]script) {
	k := 0
	for i := range rows {
		for rune(i<<4) > scriptEnds[k].last {
			k++
		}
		rows[i] = scriptEnds[k].script
	}
	return rows
}()

// scriptAt finds the script and the length of the character beyond ASCII at k. As in classWide, its row comes from the bytes.
func scriptAt(s string, k int) (script, int) {
	b := s[k]
	if b < 0xE0 {
		return scriptRows[uint(b&31)<<2|uint(s[k+1]&63)>>4], 2
	}
	if b < 0xF0 {
		return scriptRows[uint(b&15)<<8|uint(s[k+1]&63)<<2|uint(s[k+2]&63)>>4], 3
	}
	if b == 0xF0 && s[k+1] >= 0xA0 && s[k+1] < 0xC0 {
		return scriptHan, 4 // U+20000 to U+3FFFF
	}
	return scriptSymbol, 4
}
