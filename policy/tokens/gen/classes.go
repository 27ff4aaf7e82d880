// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

const (
	classLimit = 0x20000 // beyond it are ideographs, signs and the variation selectors, see classFar
	blockLen   = 64      // so that the last byte of a character says where it is in its block
	mark       = 1 | 2 | 32
	sign       = 128
	ideograph  = 1 | 2 | 64
)

// writeClasses writes classes.go: a table in two levels, as most blocks of characters are the same.
func writeClasses(out string, classes []byte) error {
	var far []rune
	for r := classLimit; r < len(classes); r++ {
		want := byte(sign)
		if r >= 0xE0100 && r < 0xE01F0 {
			want |= mark
		}
		switch c := classes[r]; {
		case c == ideograph && classes[r-1] != ideograph, c != ideograph && classes[r-1] == ideograph && r > classLimit:
			far = append(far, rune(r))
		case c != ideograph && c != want:
			return fmt.Errorf("class of %U: %#x, not %#x", r, c, want)
		}
	}
	numbers := map[string]int{}
	var index []int
	var blocks []byte
	for r := 0; r < classLimit; r += blockLen {
		block := string(classes[r : r+blockLen])
		if _, ok := numbers[block]; !ok {
			numbers[block] = len(numbers)
			blocks = append(blocks, block...)
		}
		index = append(index, numbers[block])
	}
	fmt.Println(len(numbers), "blocks of classes,", 2*len(index)+len(blocks), "bytes")
	var b strings.Builder
	b.WriteString("package tokens\n\n")
	fmt.Fprintf(&b, "// classIndex gives the block of %d characters, classBlocks their classes (the bits of class.go).\n", blockLen)
	list(&b, "classIndex", "uint16", index, 32)
	list(&b, "classBlocks", "uint8", blocks, blockLen)
	fmt.Fprintf(&b, "// farIdeographs are the characters from %U on where ideographs begin and where they end, in turn.\n", classLimit)
	list(&b, "farIdeographs", "rune", far, 16)
	return writeGo(filepath.Join(out, "classes.go"), b.String())
}

// list writes an array with so many values in a line.
func list[T int | byte | rune | uint64](b *strings.Builder, name, kind string, values []T, line int) {
	fmt.Fprintf(b, "var %s = [%d]%s{", name, len(values), kind)
	lines(b, values, line)
	b.WriteString("}\n\n")
}

func lines[T int | byte | rune | uint64](b *strings.Builder, values []T, line int) {
	for i, v := range values {
		if i%line == 0 {
			b.WriteString("\n\t")
		}
		fmt.Fprintf(b, "%d,", v)
	}
	b.WriteString("\n")
}
