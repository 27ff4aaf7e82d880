// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writeNFC writes nfc_qwen.go: what is needed to compose characters as Qwen's normalizer does.
func writeNFC(in, out string) error {
	f, err := os.ReadFile(filepath.Join(in, "qwen.nfc"))
	if err != nil {
		return err
	}
	var whole, to, marks, composed []rune
	var at []int
	var class []byte
	var pairs [][3]rune
	for line := range strings.Lines(string(f)) {
		var r []rune
		for _, field := range strings.Fields(line)[1:] {
			var c rune
			if _, err := fmt.Sscanf(field, "%x", &c); err != nil {
				return err
			}
			r = append(r, c)
		}
		switch line[0] {
		case 'd':
			whole, at, to = append(whole, r[0]), append(at, len(to)), append(to, r[1:]...)
		case 'm':
			marks, class = append(marks, r[0]), append(class, byte(r[1]))
		case 'p':
			pairs = append(pairs, [3]rune(r))
		}
	}
	at = append(at, len(to))
	slices.SortFunc(pairs, func(a, b [3]rune) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	var keys []uint64
	for _, p := range pairs {
		keys, composed = append(keys, uint64(p[0])<<32|uint64(p[1])), append(composed, p[2])
	}
	var b strings.Builder
	b.WriteString("//go:build weir_qwen\n\npackage tokens\n\n// nfcOdd has the characters that a text in NFC has not, or not everywhere.\n")
	bitset(&b, "nfcOdd", oddOnes(whole, composed, marks, pairs))
	b.WriteString("\n// nfcWhole are the characters that are decomposed, each to the part of nfcParts that begins at nfcAt.\n")
	list(&b, "nfcWhole", "rune", whole, 16)
	list(&b, "nfcAt", "uint16", at, 32)
	list(&b, "nfcParts", "rune", to, 16)
	b.WriteString("// nfcMarks are the marks that change places, nfcClass their classes.\n")
	list(&b, "nfcMarks", "rune", marks, 16)
	list(&b, "nfcClass", "uint8", class, 32)
	b.WriteString("// nfcPairs are two characters each that are composed to one, of nfcComposed.\n")
	list(&b, "nfcPairs", "uint64", keys, 8)
	list(&b, "nfcComposed", "rune", composed, 16)
	return writeGo(filepath.Join(out, "nfc_qwen.go"), b.String())
}

// oddOnes are the marks, what stands second in a pair (also of Korean), and what is decomposed and not composed again.
func oddOnes(whole, composed, marks []rune, pairs [][3]rune) []uint64 {
	odd := make([]uint64, 0x30000/64)
	put := func(r rune) { odd[r/64] |= 1 << (r % 64) }
	for _, r := range whole {
		if !slices.Contains(composed, r) {
			put(r)
		}
	}
	for _, r := range marks {
		put(r)
	}
	for _, p := range pairs {
		put(p[1])
	}
	for r := rune(0x1161); r <= 0x1175; r++ {
		put(r)
	}
	for r := rune(0x11A8); r <= 0x11C2; r++ {
		put(r)
	}
	return odd
}
