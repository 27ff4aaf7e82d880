// SPDX-License-Identifier: Apache-2.0

//go:build !weir_qwen && !weir_deepseek && !weir_mistral

package tokens

import (
	"encoding/binary"
	"unsafe"
)

const anyLinked = false

// place says where the table of a view is. In a build that has but one, the compiler knows it.
type place struct{}

func (v *view) base() unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(table)) }

// slots is how many the table has.
func (v *view) slots() uint64 { return numSlots }

// longest is the length of the longest token, in bytes.
func (*place) longest() int { return longestToken }

// rank gives the rank of the string with hash h, or noRank. A hit and a miss both read one pilot and one entry: that of the
// slot where the string lies if it is in the table. The pilot of its bucket was chosen so that no two share a slot.
func (v *view) rank(h uint64) uint32 {
	pilot := uint64(*(*uint8)(unsafe.Add(unsafe.Pointer(unsafe.StringData(table)), h>>(64-bucketBits))))
	slot := (h * (pilot*pilotMul + pilotAdd) >> 32) * numSlots >> 32
	e := binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(table)), numBuckets+slot*8))[:])
	other := (e>>printShift ^ h>>printInHash) & printMask // not 0: another string
	return (uint32(e>>(v.shift&63)) | -uint32((other+printMask)>>29)) & v.noRank
}

func viewOf(e encoding) view {
	if e == encCl100k {
		return view{shift: 0, noRank: 1<<17 - 1, borders: bordersAt + borderSize*4}
	}
	return view{shift: 17, noRank: 1<<18 - 1, borders: bordersAt}
}
