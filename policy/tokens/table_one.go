// SPDX-License-Identifier: Apache-2.0

//go:build !weir_qwen && !weir_deepseek && !weir_mistral

package tokens

import "unsafe"

const anyLinked = false

// place says where the table of a view is. In a build that has but one, the compiler knows it.
type place struct{}

func (v *view) base() unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(table)) }

// slots is how many the table has.
func (v *view) slots() uint64 { return numSlots }

// longest is the length of the longest token, in bytes.
func (*place) longest() int { return longestToken }

// entry gives the entry that the string with hash h has if it is in the table.
func (v *view) entry(h uint64) uint64 {
	pilot := *(*uint8)(unsafe.Add(v.base(), h>>(64-bucketBits)))
	return load64(unsafe.Add(v.base(), numBuckets+8*slot(h, uint64(pilot), numSlots)))
}

func viewOf(e encoding) view {
	if e == encCl100k {
		return view{shift: 0, noRank: 1<<17 - 1, borders: bordersAt + borderSize*4}
	}
	return view{shift: 17, noRank: 1<<18 - 1, borders: bordersAt}
}
