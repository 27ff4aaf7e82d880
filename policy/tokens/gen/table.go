// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// What table.go and hash.go of package tokens say, too.
const (
	fill        = 0.95 // of the slots; a fuller table takes much longer to find
	bucketBits  = 17
	printBits   = 29
	printShift  = 64 - printBits
	printInHash = 18
	ranksMask   = 1<<printShift - 1 // both ranks; all ones: a token in neither encoding
	rankMaskO   = 1<<18 - 1
	rankMaskC   = 1<<17 - 1
	rankShiftO  = 17

	mulLen   uint64 = 0x9E3779B97F4A7C15
	mulWord  uint64 = 0xE7037ED1A0B428DB
	mulLast  uint64 = 0xD6E8FEB86659FD93
	mulEnd   uint64 = 0xA0761D6478BD642F
	pilotMul uint64 = 0x9FB21C651E98DF24
	pilotAdd uint64 = 0x8EBC6AF09C88C6E3
)

func hash(s string) uint64 {
	b := []byte(s)
	x := uint64(len(b)) * mulLen
	if len(b) > 8 {
		for i := 0; len(b)-i > 8; i += 8 {
			x = (x + binary.LittleEndian.Uint64(b[i:])) * mulWord
			x ^= x >> 32
		}
		b = b[len(b)-8:]
	}
	var w [8]byte
	copy(w[:], b)
	x = (x + binary.LittleEndian.Uint64(w[:])) * mulLast
	x ^= x >> 32
	return x * mulEnd
}

// writeTable writes table.bin, and slots.go with the figures that belong to it.
func writeTable(out string, o200k, cl100k []string) error {
	vocab := join(o200k, cl100k)
	keys, longest, err := keysOf(vocab)
	if err != nil {
		return err
	}
	slots := uint64(float64(len(vocab)) / fill)
	pilots, entries, err := place(keys, slots)
	if err != nil {
		return err
	}
	var t bytes.Buffer
	t.Write(pilots)
	for _, words := range []any{entries, borders(o200k), borders(cl100k)} {
		if err := binary.Write(&t, binary.LittleEndian, words); err != nil {
			return err
		}
	}
	fmt.Println(len(vocab), "strings,", slots, "slots,", t.Len(), "bytes")
	if err := os.WriteFile(filepath.Join(out, "table.bin"), t.Bytes(), 0o644); err != nil {
		return err
	}
	return writeGo(filepath.Join(out, "slots.go"), fmt.Sprintf(
		"package tokens\n\nconst (\n\tnumSlots = %d // for %d strings\n\tlongestToken = %d // bytes\n)\n", slots, len(vocab), longest))
}

// join gives each string of both vocabularies its two ranks, as an entry holds them.
func join(o200k, cl100k []string) map[string]uint64 {
	vocab := map[string]uint64{}
	for r, t := range o200k {
		vocab[t] = uint64(r)<<rankShiftO | rankMaskC
	}
	for r, t := range cl100k {
		if v, ok := vocab[t]; ok {
			vocab[t] = v&^rankMaskC | uint64(r)
		} else {
			vocab[t] = rankMaskO<<rankShiftO | uint64(r)
		}
	}
	return vocab
}

// key is a string of the vocabulary: its hash and its ranks.
type key struct{ hash, ranks uint64 }

// keysOf sorts the strings by their hashes, of which no two may be the same, and says how long the longest is.
func keysOf(vocab map[string]uint64) (keys []key, longest int, err error) {
	for t, ranks := range vocab {
		keys = append(keys, key{hash(t), ranks})
		longest = max(longest, len(t))
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Compare(a.hash, b.hash) })
	for i := 1; i < len(keys); i++ {
		if keys[i].hash == keys[i-1].hash {
			return nil, 0, fmt.Errorf("two strings have the hash %#x: other constants are needed", keys[i].hash)
		}
	}
	return keys, longest, nil
}
