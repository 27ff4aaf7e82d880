// SPDX-License-Identifier: Apache-2.0

// Package jsonwalk walks over JSON without understanding it: it finds where values begin and end, and looks at no byte of a
// string but its quotes. That is several times faster in wasm than a parser, and a body is mostly strings. It takes anything,
// also what is cut off anywhere: of what is no JSON it gives some pieces, or none. All is bounded by the length of the input and
// nothing recurses, but Invalid, which has a bound for it. A Value is a piece that is read where somebody asks.
package jsonwalk

// Members calls f with the key and the raw value of each member of an object until f says false. A key that has escapes comes as
// it is written. whole: f has seen all of the object, up to its closing brace.
func Members(object string, f func(key, value string) bool) (whole bool) {
	i := SkipSpace(object, 0)
	if i == len(object) || object[i] != '{' {
		return false
	}
	for i++; ; {
		i = skipSeparators(object, i)
		if i >= len(object) || object[i] != '"' {
			return i < len(object) && object[i] == '}'
		}
		end := SkipString(object, i)
		key := object[i+1 : max(end-1, i+1)]
		i = SkipSpace(object, end)
		if i >= len(object) || object[i] != ':' {
			return false
		}
		i = SkipSpace(object, i+1)
		end = skipValue(object, i)
		if end == i || !f(key, object[i:end]) {
			return false
		}
		i = end
	}
}

// Items calls f with the raw value of each item of an array until f says false. whole: f has seen all of the array, up to its
// closing bracket.
func Items(array string, f func(value string) bool) (whole bool) {
	i := SkipSpace(array, 0)
	if i == len(array) || array[i] != '[' {
		return false
	}
	for i++; ; {
		i = skipSeparators(array, i)
		end := skipValue(array, i)
		if end == i {
			return i < len(array) && array[i] == ']'
		}
		if !f(array[i:end]) {
			return false
		}
		i = end
	}
}

// SkipSpace gives the place of the first byte from i on that is no white space.
func SkipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

func skipSeparators(s string, i int) int {
	for i = SkipSpace(s, i); i < len(s) && s[i] == ','; {
		i = SkipSpace(s, i+1)
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
		return SkipString(s, i)
	case '{', '[':
		return skipNested(s, i)
	}
	for i < len(s) && s[i] != ',' && s[i] != '}' && s[i] != ']' && s[i] > ' ' {
		i++
	}
	return i
}

// SkipString gives the end of the string at i, past its quote.
func SkipString(s string, i int) int {
	if end := closing(s, i+1); end >= 0 {
		return end
	}
	return len(s)
}

// closing gives the place behind the quote that ends the string that i is in; -1 if there is none.
func closing(s string, i int) int {
	for {
		n := IndexByte(s[i:], '"')
		if n < 0 {
			return -1
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
	if end, _, whole := Texts(s, i); whole {
		return end
	}
	return len(s)
}

// Texts gives the end of the string, object or array at i, and how many bytes are in its strings, each with its last quote. whole: it is all
// there.
func Texts(s string, i int) (end, texts int, whole bool) {
	for depth := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			next := closing(s, i+1)
			if next < 0 {
				return i, texts, false
			}
			texts += next - i - 1
			i = next - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			continue
		}
		if depth == 0 {
			return i + 1, texts, true
		}
	}
	return i, texts, false
}
