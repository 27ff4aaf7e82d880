// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// TestTableIsTheOneGenerated guards against a table that a tool has changed on its way. A new one needs a new sum here.
func TestTableIsTheOneGenerated(t *testing.T) {
	const want = "4ebdd78ffe0da92659dacf3a7d0700e6dbdc5d979432c5069245d463ac136b92"
	if sum := sha256.Sum256([]byte(table)); hex.EncodeToString(sum[:]) != want {
		t.Errorf("table.bin has SHA-256 %x, not %s", sum, want)
	}
	if len(table) != tableSize {
		t.Errorf("table.bin has %d bytes, not %d", len(table), tableSize)
	}
	for e, want := range [numEncodings]string{
		encQwen:     "bdb49c3a7f1f2624ceb00ee29080a90481d977ed5ad54a55599604fb3a6cd5a3",
		encDeepSeek: "68bbfbaa2f4b9ada6f45645fc627f232a5aaae3a7778979020dfecd724735296",
		encMistral:  "ffd154cfe63a4592314672a08505f2d66b351a0464592fe2f14f041b4621a2e6",
	} {
		if x := encoding(e).extra(); x != nil {
			if sum := sha256.Sum256([]byte(x.table)); hex.EncodeToString(sum[:]) != want {
				t.Errorf("the table of %v has SHA-256 %x, not %s", exactFamilies[e], sum, want)
			}
		}
	}
}

// TestEveryRankIsThereOnce: two tokens of the same rank would be joined in the wrong order now and then.
func TestEveryRankIsThereOnce(t *testing.T) {
	for e, size := range [numEncodings]int{encO200k: 199_998, encCl100k: 100_256, encQwen: 151_643, encDeepSeek: 127_997, encMistral: 130_072} {
		if !encoding(e).linked() {
			continue
		}
		v := viewOf(encoding(e))
		times := make([]int, v.noRank+1)
		for s := range v.slots() {
			entry := *(*uint64)(unsafe.Add(v.base(), numBuckets+s*8))
			times[uint32(entry>>v.shift)&v.noRank]++
		}
		for r, n := range times[:v.noRank] {
			if r < size && n != 1 || r >= size && n != 0 {
				t.Fatalf("encoding %d: rank %d is there %d times", e, r, n)
			}
		}
	}
}

// TestHashNeedsNoMoreThanThePiece: the hash of a piece is the same wherever it stands.
func TestHashNeedsNoMoreThanThePiece(t *testing.T) {
	const text = "abcdefghijklmnopqrstuvwxyz"
	for n := 1; n <= len(text); n++ {
		want := hash(text[:n], 0, n)
		for _, around := range [][2]string{{"", text}, {"x", text}, {"123456789", ""}, {"", "12345678"}} {
			s := around[0] + text[:n] + around[1]
			i := len(around[0])
			if got := hash(s, i, i+n); got != want {
				t.Errorf("%q in %q has the hash %#x, not %#x", text[:n], s, got, want)
			}
		}
	}
}

// TestFingerprintBitsAreIndependent: strings that are no tokens may agree with the entry they meet in each part of the
// fingerprint by chance only. A layout that took fingerprint and slot from the same bits failed here.
func TestFingerprintBitsAreIndependent(t *testing.T) {
	const n, width = 1 << 22, 10
	r := rand.New(rand.NewPCG(1, 2))
	var agree [29 - width + 1]int
	var b [24]byte
	for range n {
		for i := 0; i < len(b); i += 8 {
			w := r.Uint64()
			for k := range 8 {
				b[i+k] = byte(w >> (8 * k))
			}
		}
		s := string(b[:8+r.IntN(17)])
		h := hash(s, 0, len(s))
		pilot := uint64(table[h>>(64-bucketBits)])
		slot := (h * (pilot*pilotMul + pilotAdd) >> 32) * numSlots >> 32
		e := load8(table, numBuckets+int(slot)*8)
		if e&(1<<printShift-1) == 1<<printShift-1 {
			continue // an empty slot
		}
		differ := (e>>printShift ^ h>>printInHash) & printMask
		for k := range agree {
			if differ>>k&(1<<width-1) == 0 {
				agree[k]++
			}
		}
	}
	want := float64(n) * 0.95 / (1 << width)
	for k, a := range agree {
		if x := float64(a) / want; x < 0.9 || x > 1.1 {
			t.Errorf("bits %d to %d agree %.2f times as often as by chance", k, k+width-1, x)
		}
	}
}
