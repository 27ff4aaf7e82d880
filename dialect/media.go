// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/weirproxy/weir/policy/jsonwalk"
	"github.com/weirproxy/weir/policy/tokens"
)

// What sound and files cost. Providers publish tokens a second of sound; a second of MP3 is some 16 kB, and a WAV file says
// what it is. A page of a PDF is some 50 kB and 2000 tokens, as text and as a picture; providers take 100 pages or so.
const (
	audioPerSecond       = 10
	geminiAudioPerSecond = 32
	mp3BytesPerSecond    = 16_000
	pageBytes            = 50_000
	tokensPerPage        = 2000
	maxPages             = 100
	maxAudioSeconds      = 3 * 3600
)

// audio counts sound by its length in seconds.
func (r *Reader) audio(part jsonwalk.Value) int64 {
	raw := part.Get("input_audio.data").Quoted()
	if raw == "" {
		r.request.References = true
		return perAudioOrFile
	}
	return r.sound(unfolded(raw), encoded(raw).size())
}

// sound counts sound of so many bytes.
func (r *Reader) sound(data encoded, bytes int64) int64 {
	second := int64(mp3BytesPerSecond)
	if data.is(0, "RIFF") && data.is(8, "WAVE") {
		second = max(int64(data.little(28)|data.little(30)<<16), 8000)
	}
	seconds := min((bytes+second-1)/second, maxAudioSeconds)
	if r.family == tokens.Gemini {
		return seconds * geminiAudioPerSecond
	}
	return seconds * audioPerSecond
}

// file counts a file by its bytes, or flat if it is only named.
func (r *Reader) file(part jsonwalk.Value) int64 {
	v := part.Get("file.file_data")
	if !v.Exists() {
		v = part.Get("file_data")
	}
	raw := v.Quoted()
	media, data, ok := dataURL(raw)
	if !ok {
		data = encoded(raw)
	}
	return r.document64(media, data)
}

// document64 counts a file in base64.
func (r *Reader) document64(media string, data encoded) int64 {
	if data == "" {
		r.request.References = true
		return perAudioOrFile
	}
	bytes := data.size()
	if strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "json") {
		return (bytes + bytesPerToken - 1) / bytesPerToken
	}
	return min((bytes+pageBytes-1)/pageBytes, maxPages) * tokensPerPage
}
