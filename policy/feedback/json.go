// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"iter"
	"strings"
)

// The functions here walk over JSON that may be cut off anywhere, or be no JSON at all: they find where values begin and end
// and give what they have. Each is bounded by the length of its input and none recurses.

// members are the keys and raw values of an object.
func members(object string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		i := skipSpace(object, 0)
		if i == len(object) || object[i] != '{' {
			return
		}
		for i++; ; {
			i = skipSeparators(object, i)
			if i >= len(object) || object[i] != '"' {
				return
			}
			end := skipString(object, i)
			key := unquote(object[i:end])
			i = skipSpace(object, end)
			if i >= len(object) || object[i] != ':' {
				return
			}
			i = skipSpace(object, i+1)
			end = skipValue(object, i)
			if end == i || !yield(key, object[i:end]) {
				return
			}
			i = end
		}
	}
}

// items are the raw values of an array; of anything else, itself.
func items(array string) iter.Seq[string] {
	return func(yield func(string) bool) {
		i := skipSpace(array, 0)
		if i == len(array) || array[i] != '[' {
			yield(array)
			return
		}
		for i++; ; {
			i = skipSeparators(array, i)
			end := skipValue(array, i)
			if end == i || !yield(array[i:end]) {
				return
			}
			i = end
		}
	}
}

// unquote is what a string or a number says, escapes as they are written: no code that is looked for has any. null, objects
// and arrays say nothing.
func unquote(raw string) string {
	switch {
	case raw == "" || raw == "null" || raw[0] == '{' || raw[0] == '[':
		return ""
	case raw[0] == '"':
		return strings.TrimSuffix(raw[1:], `"`)
	}
	return raw
}

func isObject(raw string) bool { return raw != "" && raw[0] == '{' }

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

func skipSeparators(s string, i int) int {
	for i = skipSpace(s, i); i < len(s) && s[i] == ','; {
		i = skipSpace(s, i+1)
	}
	return i
}

// skipValue gives the end of the value at i; i if there is none.
func skipValue(s string, i int) int {
	if i >= len(s) {
		return i
	}
	switch s[i] {
	case '"':
		return skipString(s, i)
	case '{', '[':
		return skipNested(s, i)
	}
	for i < len(s) && s[i] != ',' && s[i] != '}' && s[i] != ']' && s[i] > ' ' {
		i++
	}
	return i
}

// skipString gives the end of the string at i, past its quote.
func skipString(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// skipNested gives the end of the object or array at i.
func skipNested(s string, i int) int {
	for depth := 0; i < len(s); {
		switch s[i] {
		case '"':
			i = skipString(s, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(s)
}
