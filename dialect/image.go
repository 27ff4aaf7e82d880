// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"

	"github.com/weirproxy/weir/policy/jsonwalk"
	"github.com/weirproxy/weir/policy/tokens"
)

// image counts a picture, in whatever form the dialect has it: by its width and height, as the provider publishes it, or
// flat where they are not known (a URL, a file's name). Base64 is never text.
func (r *Reader) image(part jsonwalk.Value) int64 {
	url, detail := part.Get("image_url"), part.Get("detail").Str()
	if url.IsObject() {
		detail = url.Get("detail").Str()
		url = url.Get("url")
	}
	data := encoded("")
	if _, d, ok := dataURL(url.Quoted()); ok {
		data = unfolded(string(d))
	} else if source := part.Get("source.data"); source.Type() == jsonwalk.String {
		data = unfolded(source.Quoted())
	}
	return r.picture(data, detail)
}

// picture counts a picture of the model's family.
func (r *Reader) picture(data encoded, detail string) int64 {
	w, h, ok := data.pixels()
	if !ok {
		r.request.References = true
		if r.family.OpenAI() && detail == "low" {
			return rulesFor(r.request.Model).low()
		}
		return perImage
	}
	switch r.family {
	case tokens.O200k, tokens.Cl100k:
		return rulesFor(r.request.Model).count(w, h, detail)
	case tokens.Claude47:
		return byArea(w, h, 2576, 4784)
	case tokens.Gemini:
		return geminiTiles(w, h)
	}
	return byArea(w, h, 1568, 1600) // Claude; of the others nothing better is known
}

// byArea is Anthropic's rule: width times height by 750, after the picture was made smaller.
func byArea(w, h int, edge, most float64) int64 {
	x, y := float64(w), float64(h)
	scale := min(1, edge/max(x, y))
	return int64(math.Ceil(min(x*scale*y*scale/750, most)))
}

// Gemini takes 258 tokens for a small picture, and for each tile of a larger one.
const (
	geminiTile  = 258
	geminiSmall = 384
	geminiMost  = 3000
)

func geminiTiles(w, h int) int64 {
	if w <= geminiSmall && h <= geminiSmall {
		return geminiTile
	}
	unit := min(max(min(w, h)*2/3, 256), 768)
	across, down := int64((w+unit-1)/unit), int64((h+unit-1)/unit)
	return min(min(across, geminiMost)*min(down, geminiMost)*geminiTile, geminiMost)
}
