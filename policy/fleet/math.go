// SPDX-License-Identifier: Apache-2.0

package fleet

import "math/bits"

// mulDiv is a*b/c and the remainder, with a product of 128 bits, for a, b >= 0 and c > 0. The quotient must fit into 63 bits.
func mulDiv(a, b, c int64) (quotient, rest int64) {
	return mulAddDiv(a, b, 0, c)
}

// mulAddDiv is (a*b+d)/c and the remainder, on the same terms, with d >= 0.
func mulAddDiv(a, b, d, c int64) (quotient, rest int64) {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	lo, carry := bits.Add64(lo, uint64(d), 0)
	hi += carry
	if hi >= uint64(c) {
		return maxUnits, 0
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, maxUnits)), int64(r)
}

// part is a*b/c, rounded down.
func part(a, b, c int64) int64 {
	q, _ := mulDiv(a, b, c)
	return q
}
