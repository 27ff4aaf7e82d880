// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// Of a body beyond the cap only the beginning is read, and mostly such a body is large because of a picture or a file in it.
// Its bytes must not count as text, or one picture would take a minute's tokens.

// mediaKeys are the members in which providers take pictures, sound and files as base64.
var mediaKeys = map[string]bool{
	"url": true, "image_url": true, "data": true, "bytes": true, "file_data": true, "image": true, "video": true, "audio": true, "images": true,
}

const (
	leastBlob = 1 << 10 // bytes of a string that may be a file

	// bytesPerRest is what the length of the part that nobody reads stands for if it begins within a file: there may be
	// text after it. The answer's usage puts it right.
	bytesPerRest = 1000
)

// estimatePart is the input of a body of so many bytes of which only the beginning is there: pictures and files by their
// number, all else by its length.
func estimatePart(part string, length int64) int64 {
	var blobs, blobBytes int64
	key := ""
	for i := jsonwalk.IndexByte(part, '"'); i >= 0 && i < len(part); {
		end := jsonwalk.SkipString(part, i)
		value := strings.TrimSuffix(part[i+1:end], `"`)
		if after := jsonwalk.SkipSpace(part, end); after < len(part) && part[after] == ':' {
			key = value
		} else if mediaKeys[key] && isBlob(value) {
			blobs++
			blobBytes += int64(len(value))
			if end == len(part) { // it goes on beyond the part
				rest := max(length-int64(len(part)), 0)
				return ByLength(int64(len(part))-blobBytes).Input + blobs*perImage + rest/bytesPerRest
			}
		}
		next := jsonwalk.IndexByte(part[end:], '"')
		if next < 0 {
			break
		}
		i = end + next
	}
	return ByLength(length-blobBytes).Input + blobs*perImage
}

// isBlob says whether a string looks like base64, by a look here and there.
func isBlob(s string) bool {
	if strings.HasPrefix(s, "data:") {
		if i := strings.IndexByte(s[:min(len(s), 200)], ','); i > 0 {
			s = s[i+1:]
		}
	}
	if len(s) < leastBlob {
		return false
	}
	for i := 0; i < len(s)-4; i += 1 + i/64 { // all of the beginning, then fewer and fewer
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_' || c == '=' || c == '\\') {
			return false
		}
	}
	return true
}
