// SPDX-License-Identifier: Apache-2.0

//go:build weir_qwen || weir_deepseek || weir_mistral

package tokens

import (
	"encoding/binary"
	"unsafe"
)

const anyLinked = true

// place says where the table of a view is.
type place struct {
	begin unsafe.Pointer
	size  uint64
	most  int
}

func (v *view) base() unsafe.Pointer { return v.begin }

// slots is how many the table has.
func (v *view) slots() uint64 { return v.size }

// longest is the length of the longest token, in bytes.
func (p *place) longest() int { return p.most }

// rank gives the rank of the string with hash h, or noRank. A hit and a miss both read one pilot and one entry: that of the
// slot where the string lies if it is in the table. The pilot of its bucket was chosen so that no two share a slot.
func (v *view) rank(h uint64) uint32 {
	pilot := uint64(*(*uint8)(unsafe.Add(v.begin, h>>(64-bucketBits))))
	slot := (h * (pilot*pilotMul + pilotAdd) >> 32) * v.size >> 32
	e := binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(v.begin, numBuckets+slot*8))[:])
	other := (e>>printShift ^ h>>printInHash) & printMask // not 0: another string
	return (uint32(e>>(v.shift&63)) | -uint32((other+printMask)>>29)) & v.noRank
}

func viewOf(e encoding) view {
	if x := e.extra(); x != nil {
		p := place{unsafe.Pointer(unsafe.StringData(x.table)), x.slots, x.longest}
		return view{shift: 17, noRank: 1<<18 - 1, borders: numBuckets + uint(x.slots)*8, place: p}
	}
	p := place{unsafe.Pointer(unsafe.StringData(table)), numSlots, longestToken}
	if e == encCl100k {
		return view{shift: 0, noRank: 1<<17 - 1, borders: bordersAt + borderSize*4, place: p}
	}
	return view{shift: 17, noRank: 1<<18 - 1, borders: bordersAt, place: p}
}
