// SPDX-License-Identifier: Apache-2.0

package brotli

// A mode says how the two bytes before a literal choose its code.
type mode uint8

const (
	lsb6 mode = iota
	msb6
	utf8
	signed
)

// context gives a number below 64; p1 is the last byte.
func (m mode) context(p1, p2 byte) int {
	switch m {
	case lsb6:
		return int(p1 & 63)
	case msb6:
		return int(p1 >> 2)
	case utf8:
		return int(lastByte[p1] | byteBefore[p2])
	}
	return int(bySize[p1]<<3 | bySize[p2])
}

// ascii is the class of a byte below 128, in hexadecimal: control, line end, blank, other signs, quotes, %, brackets that open and
// that close, commas, points, =, digits, vowels and consonants in upper case, in lower case.
const ascii = "0000000001100100" + "0000000000000000" + "2343353467338393" + "bbbbbbbbbb886a73" +
	"3cdddcdddcdddddc" + "dddddcddddd63733" + "3efffefffefffffe" + "fffffefffff63730"

var lastByte, byteBefore, bySize = func() (last, before, size [256]uint8) {
	for i := range 256 {
		switch {
		case i < 128:
			digit := ascii[i]
			if digit -= '0'; digit > 9 {
				digit -= 'a' - '0' - 10
			}
			last[i] = digit << 2
			before[i] = [16]uint8{0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3}[digit]
		case i < 192:
			last[i] = uint8(i & 1)
		default:
			last[i] = uint8(2 + i&1)
			if i >= 224 {
				before[i] = 2
			}
		}
		for _, from := range []int{1, 16, 64, 128, 192, 240, 255} {
			if i >= from {
				size[i]++
			}
		}
	}
	return
}()
