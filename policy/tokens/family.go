// SPDX-License-Identifier: Apache-2.0

package tokens

import "strconv"

// Family says how the tokens of a model are counted.
type Family uint8

// The families. The estimated ones are counted with the pieces of o200k_base, each class of pieces times a factor of the
// family; see tally.go, and gen/README.md for the tokenizers that the factors come from.
const (
	O200k    Family = iota // exact: GPT-4o, 4.1, 5, the o series, gpt-oss
	Cl100k                 // exact: GPT-4, GPT-3.5
	Claude                 // estimated: Claude 3 to Opus 4.6
	Claude47               // estimated: Claude Opus 4.7, 4.8 and 5
	Claude2                // estimated: Claude 2 and before
	Gemini                 // estimated: Gemini, and Gemma 3
	Llama                  // estimated: Llama 3
	Qwen                   // estimated, or exact in a build that links it: Qwen 2 and 3
	DeepSeek               // estimated, or exact in a build that links it: DeepSeek V3, V4 and R1
	Mistral                // estimated, or exact in a build that links it (extra.go): Mistral's tekken
	Other                  // estimated: all the rest, as the mean of those with open vocabularies
	numFamilies
)

var familyNames = [numFamilies]string{
	O200k: "o200k", Cl100k: "cl100k", Claude: "claude", Claude47: "claude-4.7", Claude2: "claude-2", Gemini: "gemini", Llama: "llama",
	Qwen: "qwen", DeepSeek: "deepseek", Mistral: "mistral", Other: "other",
}

// ParseFamily reads what String writes.
func ParseFamily(name string) (Family, bool) {
	for f, n := range familyNames {
		if n == name {
			return Family(f), true
		}
	}
	return Other, false
}

// String gives the name that policies use.
func (f Family) String() string {
	if f < numFamilies {
		return familyNames[f]
	}
	return "Family(" + strconv.Itoa(int(f)) + ")"
}

// OpenAI says whether it is a family of OpenAI's.
func (f Family) OpenAI() bool { return f <= Cl100k }

// Exact says whether the count is that of the provider's own tokenizer.
func (f Family) Exact() bool { return f == O200k || f.encoding() != encO200k }

// encoding gives the vocabulary by which f is counted or estimated.
func (f Family) encoding() encoding {
	if f == Cl100k {
		return encCl100k
	}
	if anyLinked {
		for e := encCl100k + 1; e < numEncodings; e++ {
			if exactFamilies[e] == f && e.linked() {
				return e
			}
		}
	}
	return encO200k
}

// estimate gives what a text with this tally is for f: to the nearest token, and no text is free.
func (f Family) estimate(t *tally) int {
	if f >= numFamilies {
		f = Other
	}
	sum := int64(0)
	for k, x := range t {
		sum += int64(factors[f][k]) * int64(x)
	}
	return int(max(sum+factorOne/2, factorOne) / factorOne)
}

// factorOne is a factor of 1.
const factorOne = 1024
