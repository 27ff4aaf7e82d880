// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/weirproxy/weir/policy/tokens"
)

// pictures gives a picture of so many pixels in all forms that the standard library writes, and the headers of WebP's three.
func pictures(t *testing.T, w, h int) map[string][]byte {
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})
	var p, j, g bytes.Buffer
	for _, err := range []error{png.Encode(&p, img), jpeg.Encode(&j, img, nil), gif.Encode(&g, img, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// A camera puts a large segment with a small picture of its own before the picture.
	exif := append([]byte{0xFF, 0xD8, 0xFF, 0xE1, 0xFF, 0xFE}, make([]byte, 0xFFFC)...)
	x, y := w-1, h-1
	head := func(form string, data ...byte) []byte {
		return append(append([]byte("RIFF\x00\x00\x00\x00WEBP"+form+"\x00\x00\x00\x00"), data...), make([]byte, 16)...)
	}
	return map[string][]byte{
		"png": p.Bytes(), "jpeg": j.Bytes(), "gif": g.Bytes(), "exif": append(exif, j.Bytes()[2:]...),
		"webp extended": head("VP8X", 0, 0, 0, 0, byte(x), byte(x>>8), byte(x>>16), byte(y), byte(y>>8), byte(y>>16)),
		"webp lossless": head("VP8L", 0x2F, byte(x), byte(x>>8)&0x3F|byte(y<<6), byte(y>>2), byte(y>>10)),
		"webp lossy":    head("VP8 ", 0, 0, 0, 0x9D, 0x01, 0x2A, byte(w), byte(w>>8), byte(h), byte(h>>8)),
	}
}

func TestPixels(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {640, 480}, {333, 1027}, {3000, 257}} {
		for form, data := range pictures(t, size[0], size[1]) {
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
				if w, h, ok := encoded(enc.EncodeToString(data)).pixels(); !ok || w != size[0] || h != size[1] {
					t.Errorf("%s of %v: %d x %d, %v", form, size, w, h, ok)
				}
			}
		}
	}
}

func TestNoPicture(t *testing.T) {
	for _, s := range []string{"", "A", "iVBORw0K", strings.Repeat("iVBORw0K", 1000), "////", "/9j/", "/9j/////////////////", "UklGRgAAAABXRUJQ", "!!!!"} {
		if w, h, ok := encoded(s).pixels(); ok {
			t.Errorf("%.20s: %d x %d", s, w, h)
		}
	}
}

func FuzzPixels(f *testing.F) {
	f.Add("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ")
	f.Add("/9j/4AAQSkZJRgABAQAAAQABAAD/")
	f.Fuzz(func(t *testing.T, s string) {
		var r Reader
		for family := tokens.O200k; family <= tokens.Other; family++ {
			r.family, r.request.Model = family, "gpt-4.1-mini"
			if n := r.picture(unfolded(s), "high"); n < 1 || n > 50_000 {
				t.Errorf("%d tokens", n)
			}
		}
	})
}

// TestPublishedPictures has the examples of the providers' own pages.
func TestPublishedPictures(t *testing.T) {
	for _, x := range []struct {
		model  string
		w, h   int
		detail string
		want   int64
	}{
		{"gpt-4o", 1024, 1024, "high", 765}, {"gpt-4o", 2048, 4096, "", 1105}, {"gpt-4o", 4096, 8192, "low", 85}, {"gpt-4o-mini", 1024, 1024, "", 2833 + 4*5667},
		{"gpt-4.1-mini", 1024, 1024, "", 1659}, {"gpt-4.1-mini", 1800, 2400, "", 2353}, {"o4-mini", 1024, 1024, "", 1762}, {"gpt-5", 1024, 1024, "", 70 + 4*140},
		{"openai/gpt-5-mini", 1024, 1024, "", 1659}, {"gpt-5-nano", 512, 512, "low", 630}, {"o1", 512, 512, "", 225}, {"unknown", 1024, 1024, "", 765},
	} {
		if n := rulesFor(x.model).count(x.w, x.h, x.detail); n != x.want {
			t.Errorf("%s, %d x %d %s: %d, want %d", x.model, x.w, x.h, x.detail, n, x.want)
		}
	}
	for _, x := range []struct{ w, h, want int64 }{{200, 200, 54}, {1000, 1000, 1334}, {1092, 1092, 1590}, {8000, 8000, 1600}, {8000, 100, 41}} {
		if n := byArea(int(x.w), int(x.h), 1568, 1600); n != x.want {
			t.Errorf("Anthropic, %d x %d: %d, want %d", x.w, x.h, n, x.want)
		}
	}
	for _, x := range []struct{ w, h, want int64 }{{384, 384, 258}, {960, 540, 6 * 258}, {1024, 1024, 4 * 258}, {1 << 30, 1 << 30, 3000}} {
		if n := geminiTiles(int(x.w), int(x.h)); n != x.want {
			t.Errorf("Gemini, %d x %d: %d, want %d", x.w, x.h, n, x.want)
		}
	}
}

// TestMediaInBodies: whatever form a body has, what is in base64 costs by what it is, never by its length as text.
func TestMediaInBodies(t *testing.T) {
	b := base64.StdEncoding.EncodeToString(pictures(t, 1024, 1024)["png"])
	escaped := strings.ReplaceAll(b, "/", `\/`)
	wav := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\xc0\x5d\x00\x00\x80\xbb\x00\x00"), make([]byte, 480_000)...)
	var r Reader
	for _, x := range []struct {
		family tokens.Family
		api    API
		part   string
		want   int64
	}{
		{tokens.O200k, Chat, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + b + `"}}`, 765},
		{tokens.O200k, Chat, `{"type":"image_url","image_url":{"url":"data:image\/png;base64,` + escaped + `","detail":"low"}}`, 85},
		{tokens.O200k, Chat, `{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`, perImage},
		{tokens.O200k, Chat, `{"type":"image_url","image_url":{"url":"https://example.com/a.png","detail":"low"}}`, 85},
		{tokens.O200k, Responses, `{"type":"input_image","image_url":"data:image/png;base64,` + b + `"}`, 765},
		{tokens.Claude, Messages, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + b + `"}}`, 1399},
		{tokens.Claude, Messages, `{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`, perImage},
		{tokens.Claude, Messages, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + strings.Repeat("A", 200_000) + `"}}`, 3 * tokensPerPage},
		{tokens.O200k, Chat, `{"type":"file","file":{"file_data":"data:application/pdf;base64,` + strings.Repeat("A", 200_000) + `"}}`, 3 * tokensPerPage},
		{tokens.O200k, Chat, `{"type":"file","file":{"file_id":"file-1"}}`, perAudioOrFile},
		{tokens.O200k, Chat, `{"type":"input_audio","input_audio":{"format":"wav","data":"` + base64.StdEncoding.EncodeToString(wav) + `"}}`, 11 * audioPerSecond},
		{tokens.O200k, Chat, `{"type":"input_audio","input_audio":{"format":"mp3","data":"` + strings.Repeat("A", 64_000*4) + `"}}`, 12 * audioPerSecond},
	} {
		member := "messages"
		if x.api == Responses {
			member = "input"
		}
		body := fmt.Sprintf(`{%q:[{"role":"user","content":[%s]}]}`, member, x.part)
		r.Open(x.api, []byte(body), as(x.family))
		if n := r.Count().Input; n != x.want+perRequest+perMessage {
			t.Errorf("%.100s: %d, want %d", x.part, n-perRequest-perMessage, x.want)
		}
	}
}
