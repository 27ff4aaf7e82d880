// SPDX-License-Identifier: Apache-2.0

package dialect

// pixels gives the width and the height of a picture by its header; false if it is no picture that is known.
func (e encoded) pixels() (w, h int, ok bool) {
	switch {
	case e.is(0, "\x89PNG\r\n\x1a\n"):
		w, h = e.big(16)<<16|e.big(18), e.big(20)<<16|e.big(22)
	case e.is(0, "GIF8"):
		w, h = e.little(6), e.little(8)
	case e.is(0, "\xff\xd8"):
		w, h = e.jpeg()
	case e.is(0, "RIFF") && e.is(8, "WEBP"):
		w, h = e.webp()
	}
	return w, h, w > 0 && h > 0
}

// maxSegments is how many segments of a JPEG are looked at.
const maxSegments = 64

// jpeg goes from segment to segment up to the one that begins the picture. None is read but its length.
func (e encoded) jpeg() (w, h int) {
	i := 2
	for range maxSegments {
		if e.at(i) != 0xFF {
			return 0, 0
		}
		switch marker := e.at(i + 1); {
		case marker == 0xFF: // filling
			i++
		case marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC:
			return e.big(i + 7), e.big(i + 5)
		case marker == 0xD9 || marker == 0xDA:
			return 0, 0
		default:
			i += 2 + e.big(i+2)
		}
	}
	return 0, 0
}

// webp reads the three forms: lossy, lossless, and extended.
func (e encoded) webp() (w, h int) {
	switch {
	case e.is(12, "VP8X"):
		return e.little(24) + e.at(26)<<16 + 1, e.little(27) + e.at(29)<<16 + 1
	case e.is(12, "VP8L"):
		bits := e.little(21) | e.little(23)<<16
		return bits&0x3FFF + 1, bits>>14&0x3FFF + 1
	case e.is(12, "VP8 "):
		return e.little(26) & 0x3FFF, e.little(28) & 0x3FFF
	}
	return 0, 0
}
