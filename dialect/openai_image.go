// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"
	"strings"
)

// imageRules is how one of OpenAI's models counts pictures: so much and so much again for each tile of 512 pixels, or
// patches of 32 pixels, 1536 at most, times a factor.
type imageRules struct {
	base, tile int64
	patch      float64 // the factor; 0: it counts tiles
}

// openAIImages are the published rules, by how a model's name begins; the longest beginning counts. The first is for all
// models that are not listed.
var openAIImages = []struct {
	model string
	rules imageRules
}{
	{"", imageRules{base: 85, tile: 170}}, // gpt-4o, 4.1, 4.5, chatgpt-4o
	{"gpt-4o-mini", imageRules{base: 2833, tile: 5667}},
	{"gpt-4.1-mini", imageRules{patch: 1.62}},
	{"gpt-4.1-nano", imageRules{patch: 2.46}},
	{"gpt-5", imageRules{base: 70, tile: 140}},
	{"gpt-5-mini", imageRules{patch: 1.62}},
	{"gpt-5-nano", imageRules{patch: 2.46}},
	{"o1", imageRules{base: 75, tile: 150}},
	{"o3", imageRules{base: 75, tile: 150}},
	{"o4-mini", imageRules{patch: 1.72}},
	{"computer-use", imageRules{base: 65, tile: 129}},
}

func rulesFor(model string) (r imageRules) {
	longest := -1
	if i := strings.LastIndexByte(model, '/'); i >= 0 {
		model = model[i+1:]
	}
	for _, x := range openAIImages {
		if strings.HasPrefix(model, x.model) && len(x.model) > longest {
			r, longest = x.rules, len(x.model)
		}
	}
	return r
}

const (
	patchPixels = 32
	maxPatches  = 1536
	lowPixels   = 512 // a picture is made so small for detail: low
)

func (r imageRules) low() int64 {
	if r.patch > 0 {
		return r.patches(lowPixels, lowPixels)
	}
	return r.base
}

// count counts a picture of so many pixels.
func (r imageRules) count(w, h int, detail string) int64 {
	x, y := float64(w), float64(h)
	if r.patch > 0 {
		return r.patches(x, y)
	}
	if detail == "low" {
		return r.base
	}
	fit := min(1, 2048/max(x, y))
	x, y = x*fit, y*fit
	short := min(1, 768/min(x, y))
	x, y = x*short, y*short
	return r.base + r.tile*int64(math.Ceil(x/512))*int64(math.Ceil(y/512))
}

// patches makes a picture that has too many so small that it has whole patches at least in one direction.
func (r imageRules) patches(x, y float64) int64 {
	n := math.Ceil(x/patchPixels) * math.Ceil(y/patchPixels)
	if n > maxPatches {
		shrink := math.Sqrt(patchPixels * patchPixels * maxPatches / (x * y))
		across, down := x*shrink/patchPixels, y*shrink/patchPixels
		shrink *= min(whole(across), whole(down))
		n = math.Ceil(x*shrink/patchPixels-slack) * math.Ceil(y*shrink/patchPixels-slack)
	}
	return int64(math.Ceil(min(n, maxPatches) * r.patch))
}

// slack is for what should be whole, and is a little more by rounding.
const slack = 1e-6

// whole is by what x must be multiplied to be the whole number below.
func whole(x float64) float64 { return max(math.Floor(x), 1) / x }
