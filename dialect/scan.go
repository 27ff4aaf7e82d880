// SPDX-License-Identifier: Apache-2.0

package dialect

import "strings"

// The functions here walk over JSON without understanding it: they find where values begin and end, and look at no byte of
// a string but its quotes. That is several times faster in wasm than a parser, and a body is mostly strings. They take
// anything: of what is no JSON they give some pieces, or none.

// eachMember calls f with the key and the raw value of each member of an object until f says false. A key that has escapes
// comes as it is written.
func eachMember(object string, f func(key, value string) bool) {
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
		key := object[i+1 : max(end-1, i+1)]
		i = skipSpace(object, end)
		if i >= len(object) || object[i] != ':' {
			return
		}
		i = skipSpace(object, i+1)
		end = skipValue(object, i)
		if end == i || !f(key, object[i:end]) {
			return
		}
		i = end
	}
}

// eachItem calls f with the raw value of each item of an array until f says false.
func eachItem(array string, f func(value string) bool) {
	i := skipSpace(array, 0)
	if i == len(array) || array[i] != '[' {
		return
	}
	for i++; ; {
		i = skipSeparators(array, i)
		end := skipValue(array, i)
		if end == i || !f(array[i:end]) {
			return
		}
		i = end
	}
}

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
	for i++; ; {
		n := strings.IndexByte(s[i:], '"')
		if n < 0 {
			return len(s)
		}
		i += n + 1
		escapes := 0
		for k := i - 2; k >= 0 && s[k] == '\\'; k-- {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
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
