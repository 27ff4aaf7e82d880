// SPDX-License-Identifier: Apache-2.0

package feedback

import "strings"

// Names and words of the protocol are ASCII; these compare and trim them without allocating and without Unicode's foldings,
// by which a Kelvin sign would be a k.

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// equalFold says whether s is word in any case; word is in small letters.
func equalFold(s, word string) bool {
	return len(s) == len(word) && hasPrefixFold(s, word)
}

func hasPrefixFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower(s[i]) != prefix[i] {
			return false
		}
	}
	return true
}

// containsFold says whether text has phrase in it in any case; phrase is in small letters and not empty.
func containsFold(text, phrase string) bool {
	for i := 0; i+len(phrase) <= len(text); i++ {
		if lower(text[i]) == phrase[0] && hasPrefixFold(text[i:], phrase) {
			return true
		}
	}
	return false
}

func containsAny(text string, phrases []string) bool {
	for _, p := range phrases {
		if containsFold(text, p) {
			return true
		}
	}
	return false
}

func trim(s string) string { return strings.Trim(s, " \t") }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
