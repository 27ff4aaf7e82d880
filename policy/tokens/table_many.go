// SPDX-License-Identifier: Apache-2.0

//go:build weir_qwen || weir_deepseek || weir_mistral

package tokens

import "unsafe"

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

// entry gives the entry that the string with hash h has if it is in the table.
func (v *view) entry(h uint64) uint64 {
	pilot := *(*uint8)(unsafe.Add(v.begin, h>>(64-bucketBits)))
	return load64(unsafe.Add(v.begin, numBuckets+8*slot(h, uint64(pilot), v.size)))
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
