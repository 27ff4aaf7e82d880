// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// runExtra writes NAME.bin and slots_NAME.go.
func runExtra(in, out, name string) error {
	tokens, err := readRanks(filepath.Join(in, name+".ranks"))
	if err != nil {
		return err
	}
	lefts, err := readLefts(filepath.Join(in, name+".lefts"))
	if err != nil {
		return err
	}
	digits := 1
	if name == "deepseek" {
		digits = 3
	}
	if err := check(tokens, lefts, digits); err != nil {
		return err
	}
	keys, longest, err := keysOf(join(tokens, nil))
	if err != nil {
		return err
	}
	slots := uint64(float64(len(tokens)) / fill)
	pilots, entries, err := place(keys, slots)
	if err != nil {
		return err
	}
	var t bytes.Buffer
	t.Write(pilots)
	for _, words := range []any{entries, borders(tokens)} {
		if err := binary.Write(&t, binary.LittleEndian, words); err != nil {
			return err
		}
	}
	if name == "deepseek" {
		if err := writeSigns(in, out); err != nil {
			return err
		}
	}
	if name == "qwen" {
		if err := writeNFC(in, out); err != nil {
			return err
		}
	}
	fmt.Println(name, len(tokens), "strings,", slots, "slots,", t.Len(), "bytes")
	if err := os.WriteFile(filepath.Join(out, name+".bin"), t.Bytes(), 0o644); err != nil {
		return err
	}
	return writeGo(filepath.Join(out, "slots_"+name+".go"), fmt.Sprintf(
		"package tokens\n\nconst (\n\t%sSlots = %d // for %d strings\n\t%sLongest = %d // bytes\n)\n",
		name, slots, len(tokens), name, longest))
}

// readLefts reads the lengths of left parts, one a line; nil if there is no such file, as ranks alone are the vocabulary.
func readLefts(path string) (lefts []int, err error) {
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	for _, line := range strings.Fields(string(b)) {
		n, err := strconv.Atoi(line)
		if err != nil {
			return nil, err
		}
		lefts = append(lefts, n)
	}
	return lefts, err
}

// writeSigns writes signs_deepseek.go: which characters its pattern calls signs or punctuation.
func writeSigns(in, out string) error {
	f, err := os.ReadFile(filepath.Join(in, "deepseek.signs"))
	if err != nil {
		return err
	}
	var words [classLimit / 64]uint64
	for line := range strings.Lines(string(f)) {
		var first, last int
		if _, err := fmt.Sscanf(line, "%x %x", &first, &last); err != nil {
			return err
		}
		for c := first; c <= last; c++ {
			words[c/64] |= 1 << (c % 64)
		}
	}
	var b strings.Builder
	b.WriteString("package tokens\n\n// deepSigns has a bit for each character: whether it is in [\\p{P}\\p{S}].\n")
	bitset(&b, "deepSigns", words[:])
	return writeGo(filepath.Join(out, "signs_deepseek.go"), b.String())
}

// bitset writes a bit for each character, in two levels.
func bitset(b *strings.Builder, name string, words []uint64) {
	numbers := map[uint64]int{}
	var index []byte
	var blocks []uint64
	for _, w := range words {
		if _, ok := numbers[w]; !ok {
			numbers[w] = len(blocks)
			blocks = append(blocks, w)
		}
		index = append(index, byte(numbers[w]))
	}
	if len(blocks) > 256 {
		panic("too many blocks")
	}
	fmt.Fprintf(b, "var %s = bitset{index: []uint8{", name)
	lines(b, index, 64)
	b.WriteString("}, blocks: []uint64{")
	lines(b, blocks, 8)
	b.WriteString("}}\n")
}
