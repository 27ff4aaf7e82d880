// SPDX-License-Identifier: Apache-2.0

//go:build weir_qwen

package tokens

import (
	"slices"
	"unicode/utf8"
	"unsafe"
)

// normal puts text into Unicode's normal form C, as Qwen's tokenizer does before all else: e and a combining acute become é.
// It knows the Unicode version of that tokenizer, which is older than Go's packages; Korean is composed by rule.
type normal struct {
	text []byte
	run  []nfcRune
}

// nfcRune is a character and its class: marks (not 0) behind a character stand in the order of their classes.
type nfcRune struct {
	r     rune
	class uint8
}

// nfc gives s, which is valid UTF-8, in normal form; it is s itself if that is so already.
func (n *normal) nfc(s string) string {
	i := nfcUpTo(s)
	if i == len(s) {
		return s
	}
	b := append(sized(n.text, len(s)+len(s)/8), s[:i]...)
	for i < len(s) {
		j := runEnd(s, i)
		b = n.compose(b, s[i:j])
		k := j + nfcUpTo(s[j:])
		b = append(b, s[j:k]...)
		i = k
	}
	n.text = b
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func (n *normal) trim() {
	n.text = trim(n.text)
	if cap(n.run) > scratchMax/8 {
		n.run = nil
	}
}

// nfcUpTo says how much of s, in whole runs, is in normal form. A run is a character that is not odd, and the odd ones behind it.
func nfcUpTo(s string) int {
	run, last := 0, uint8(0) // where the run begins, and the class of the character before
	for i := 0; i < len(s); {
		if s[i] < 0xCC { // below U+0300 nothing is odd
			if i+8 <= len(s) && load8(s, i)&highs == 0 {
				run, last = i+7, 0
				i += 8
				continue
			}
			run, last = i, 0
			i++
			if s[i-1] >= 0x80 {
				i++
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !nfcOdd.has(r) {
			run, last = i, 0
			i += n
			continue
		}
		class := nfcClassOf(r)
		if class == 0 || class < last || mayChange(r) {
			return run
		}
		last = class
		i += n
	}
	return len(s)
}

// mayChange says of a mark whether it may be composed with what is before it, or decomposed.
func mayChange(r rune) bool {
	if _, ok := slices.BinarySearch(nfcSeconds, r); ok {
		return true
	}
	_, ok := slices.BinarySearch(nfcWhole[:], r)
	return ok
}

// nfcSeconds are the characters that stand second in a pair.
var nfcSeconds = func() (seconds []rune) {
	for _, p := range nfcPairs {
		seconds = append(seconds, rune(uint32(p)))
	}
	slices.Sort(seconds)
	return slices.Compact(seconds)
}()

// runEnd returns the end of the run at i.
func runEnd(s string, i int) int {
	_, n := utf8.DecodeRuneInString(s[i:])
	for i += n; i < len(s); i += n {
		var r rune
		if r, n = utf8.DecodeRuneInString(s[i:]); !nfcOdd.has(r) {
			break
		}
	}
	return i
}

// compose adds a run to b: decomposed, its marks sorted, and composed.
func (n *normal) compose(b []byte, s string) []byte {
	run := n.run[:0]
	for _, r := range s {
		run = decomposed(run, r)
	}
	for i := 0; i < len(run); i++ {
		j := i
		for j < len(run) && run[j].class != 0 {
			j++
		}
		if j > i+1 {
			slices.SortStableFunc(run[i:j], func(a, b nfcRune) int { return int(a.class) - int(b.class) })
			i = j
		}
	}
	n.run = run
	first, last, kept := -1, uint8(0), 0 // the character that marks are joined to; the class of what was kept last behind it
	for _, c := range run {
		if first >= 0 && (last == 0 && kept == first+1 || last != 0 && last < c.class) {
			if r := joined(run[first].r, c.r); r != 0 {
				run[first].r = r
				continue
			}
		}
		if c.class == 0 {
			first = kept
		}
		last = c.class
		run[kept] = c
		kept++
	}
	for _, c := range run[:kept] {
		b = utf8.AppendRune(b, c.r)
	}
	return b
}

// Korean syllables: 19 initials, 21 vowels, and 27 finals or none.
const (
	hangul, hangulEnd = 0xAC00, 0xD7A4
	initial, vowel    = 0x1100, 0x1161
	final             = 0x11A7 // none
	vowels, finals    = 21, 28
)

func decomposed(run []nfcRune, r rune) []nfcRune {
	if r >= hangul && r < hangulEnd {
		k := r - hangul
		run = append(run, nfcRune{r: initial + k/(vowels*finals)}, nfcRune{r: vowel + k/finals%vowels})
		if k%finals > 0 {
			run = append(run, nfcRune{r: final + k%finals})
		}
		return run
	}
	if k, ok := slices.BinarySearch(nfcWhole[:], r); ok {
		for _, p := range nfcParts[nfcAt[k]:nfcAt[k+1]] {
			run = append(run, nfcRune{p, nfcClassOf(p)})
		}
		return run
	}
	return append(run, nfcRune{r, nfcClassOf(r)})
}

// joined gives the character that a and b are composed to, or 0.
func joined(a, b rune) rune {
	switch {
	case a >= initial && a < initial+19 && b >= vowel && b < vowel+vowels:
		return hangul + ((a-initial)*vowels+b-vowel)*finals
	case a >= hangul && a < hangulEnd && (a-hangul)%finals == 0 && b > final && b < final+finals:
		return a + b - final
	}
	if k, ok := slices.BinarySearch(nfcPairs[:], uint64(a)<<32|uint64(b)); ok {
		return nfcComposed[k]
	}
	return 0
}

func nfcClassOf(r rune) uint8 {
	if k, ok := slices.BinarySearch(nfcMarks[:], r); ok {
		return nfcClass[k]
	}
	return 0
}
