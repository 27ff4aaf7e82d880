// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	_ "embed"
	"encoding/binary"
	"unsafe"
)

// table holds both vocabularies as one perfect hash table that is read in place: nothing is built at start. The layout
// of table.bin, which ./gen writes:
//
//	numBuckets bytes              the pilot of each bucket
//	numSlots words of 8 bytes     the entries, little endian:
//	                                bits 35..63  fingerprint: 29 bits of the hash
//	                                bits 17..34  rank in o200k_base, all ones if it is no token there
//	                                bits  0..16  rank in cl100k_base, likewise
//	2 * borderSize words of 4     the border ranks of o200k_base, then of cl100k_base; see borderRank
//
// A string is a token if the entry in its slot has its fingerprint; one that is no token passes with probability 2^-29.
//
//go:embed table.bin
var table string

const (
	bucketBits = 17
	numBuckets = 1 << bucketBits
	bordersAt  = numBuckets + numSlots*8
	// borderRow is the number of bytes that borderRank tells apart on one side of a border.
	borderRow   = 65
	borderSize  = borderRow * borderRow
	tableSize   = bordersAt + 2*borderSize*4
	printShift  = 35
	printMask   = 1<<29 - 1
	printInHash = 18 // where the bits of the fingerprint begin in the hash
)

// encoding is a vocabulary, with the pattern that cuts text for it.
type encoding uint8

const (
	encO200k encoding = iota
	encCl100k
	encQwen // this and the following: only in builds that link them, see extra.go
	encDeepSeek
	encMistral
	numEncodings
)

// view is the part of a table that belongs to one encoding.
type view struct {
	shift   uint8  // of the rank in an entry
	noRank  uint32 // all ones: the mask of the rank, and what a string has that is no token
	borders uint   // where the border ranks begin
	place
}

// rank gives the rank of the string with hash h, or noRank. A hit and a miss both read one pilot and one entry.
func (v *view) rank(h uint64) uint32 { return v.rankIn(v.entry(h), h) }

// slot gives the slot of the string with hash h, by the pilot of its bucket, which was chosen so that no two share a slot.
func slot(h, pilot, slots uint64) uint64 {
	return (h * (pilot*pilotMul + pilotAdd) >> 32) * slots >> 32
}

// rankIn is rank, with the entry; the two are apart so that the compiler inlines both.
func (v *view) rankIn(e, h uint64) uint32 {
	other := (e>>printShift ^ h>>printInHash) & printMask // not 0: another string
	return (uint32(e>>(v.shift&63)) | -uint32((other+printMask)>>29)) & v.noRank
}

// ranksOf gives the rank in o200k_base of an entry of the main table, and 1 if cl100k_base does not have it, else 0.
func ranksOf(e uint64) (rank uint32, missing uint32) {
	return uint32(e>>17) & (1<<18 - 1), (uint32(e)&(1<<17-1) + 1) >> 17
}

// borderRank gives the lowest rank of a token that crosses from a character that ends with byte a into one that begins
// with byte b, and holds only a part of one of the two. All ASCII characters are taken together.
func (v *view) borderRank(a, b byte) uint32 {
	row, col := uint(a&63), uint(b&63)
	if a < 0x80 {
		row = borderRow - 1
	}
	if b < 0x80 {
		col = borderRow - 1
	}
	at := v.borders + (row*borderRow+col)*4
	return binary.LittleEndian.Uint32((*[4]byte)(unsafe.Add(v.base(), at))[:])
}
