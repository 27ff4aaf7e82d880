// SPDX-License-Identifier: Apache-2.0

package dialect

import "strings"

// encoded is base64 as it stands in a JSON string. Bytes of it are read where they lie: a picture of megabytes is never
// decoded to know how large it is.
type encoded string

// maxPrefix is where the data of a data: URL must have begun.
const maxPrefix = 256

// dataURL gives the media type and the data of a data: URL; false if it is none.
func dataURL(url string) (media string, data encoded, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	head, _, ok := strings.Cut(rest[:min(len(rest), maxPrefix)], ",")
	if !ok || !strings.HasSuffix(head, "base64") {
		return "", "", false
	}
	media, _, _ = strings.Cut(head, ";")
	return media, encoded(rest[len(head)+1:]), true
}

// size is how many bytes the data is, to two bytes.
func (e encoded) size() int64 { return int64(len(e)) / 4 * 3 }

// at gives byte i; 0 beyond the end, and where there is no base64.
func (e encoded) at(i int) int {
	k := i / 3 * 4
	if i < 0 || k+3 >= len(e) {
		return 0
	}
	bits := sextet(e[k])<<18 | sextet(e[k+1])<<12 | sextet(e[k+2])<<6 | sextet(e[k+3])
	return bits >> (16 - 8*(i%3)) & 0xFF
}

// big and little give the two bytes at i as a number.
func (e encoded) big(i int) int    { return e.at(i)<<8 | e.at(i+1) }
func (e encoded) little(i int) int { return e.at(i) | e.at(i+1)<<8 }

// is says whether the bytes at i are these.
func (e encoded) is(i int, what string) bool {
	for k := range len(what) {
		if e.at(i+k) != int(what[k]) {
			return false
		}
	}
	return true
}

// sextet gives the six bits of a character, of either alphabet.
func sextet(b byte) int {
	switch {
	case b >= 'A' && b <= 'Z':
		return int(b - 'A')
	case b >= 'a' && b <= 'z':
		return int(b-'a') + 26
	case b >= '0' && b <= '9':
		return int(b-'0') + 52
	case b == '+' || b == '-':
		return 62
	case b == '/' || b == '_':
		return 63
	}
	return 0
}

// unfolded removes what JSON and mail put into base64 (escaped slashes, line ends) from as much of it as is looked at.
func unfolded(raw string) encoded {
	const looked = 64 << 10
	head := raw[:min(len(raw), looked)]
	if strings.IndexByte(head, '\\') < 0 {
		return encoded(raw)
	}
	head = strings.ReplaceAll(head, `\/`, "/")
	head = strings.ReplaceAll(head, `\n`, "")
	return encoded(strings.ReplaceAll(head, `\r`, ""))
}
