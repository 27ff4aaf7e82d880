// SPDX-License-Identifier: Apache-2.0

package tokens

import "strconv"

// Family says how the tokens of a model are counted.
type Family uint8

// The families.
const (
	O200k  Family = iota // exact: GPT-4o, 4.1, 5, the o series, gpt-oss
	Cl100k               // exact: GPT-4, GPT-3.5
	Claude               // estimated: Anthropic's models
	Other                // estimated: all the rest
)

// An estimated family counts as so many hundredths of the tokens of o200k_base. Both are first guesses, chosen high
// because too low a reservation breaks a limit and too high a one is settled: no tokenizer of theirs is published. The
// calibration by the usage that comes back will replace them.
const (
	claudeHundredths = 115
	otherHundredths  = 110
)

var familyNames = [...]string{O200k: "o200k", Cl100k: "cl100k", Claude: "claude", Other: "other"}

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
	if int(f) < len(familyNames) {
		return familyNames[f]
	}
	return "Family(" + strconv.Itoa(int(f)) + ")"
}

// Exact says whether the count is that of the provider's own tokenizer.
func (f Family) Exact() bool {
	return f == O200k || f == Cl100k
}

// encoding gives the vocabulary by which f is counted or estimated.
func (f Family) encoding() encoding {
	if f == Cl100k {
		return encCl100k
	}
	return encO200k
}

// scale makes the count for f of a count in its encoding.
func (f Family) scale(n int) int {
	switch f {
	case O200k, Cl100k:
		return n
	case Claude:
		return hundredths(n, claudeHundredths)
	}
	return hundredths(n, otherHundredths)
}

// hundredths rounds up.
func hundredths(n, of int) int {
	return (n*of + 99) / 100
}
