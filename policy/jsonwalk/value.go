// SPDX-License-Identifier: Apache-2.0

package jsonwalk

import (
	"strconv"
	"strings"
)

// A Value is one JSON value as it is written. Nothing of it is read before it is asked for. Empty: there is none.
type Value string

// A Type is what a value is.
type Type uint8

// Types.
const (
	Null   Type = iota // also if there is no value
	False              // JSON's false
	Number             // also NaN and Infinity, as Python writes them
	String             // also one that is cut off
	True               // JSON's true
	JSON               // an object, an array, or what is no JSON
)

// Parse gives the value that s begins with, after white space. To an object or an array all that follows it belongs, too.
func Parse(s string) Value {
	s = s[SkipSpace(s, 0):]
	if v := Value(s); v.IsObject() || v.IsArray() {
		return v
	}
	return Value(s[:skipValue(s, 0)])
}

// Type is what the value is, by how it begins.
func (v Value) Type() Type {
	if v == "" {
		return Null
	}
	switch v[0] {
	case '"':
		return String
	case 't':
		return True
	case 'f':
		return False
	case 'n':
		if len(v) < 2 || v[1] == 'u' {
			return Null
		}
		return Number // nan
	case '-', '+', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'i', 'I', 'N':
		return Number
	}
	return JSON
}

// Exists says whether there is a value, null or other.
func (v Value) Exists() bool { return v != "" }

// IsObject says whether the value is an object.
func (v Value) IsObject() bool { return v != "" && v[0] == '{' }

// IsArray says whether the value is an array.
func (v Value) IsArray() bool { return v != "" && v[0] == '[' }

// Num is a number; 0 if the value is none, infinite if it is too large.
func (v Value) Num() float64 {
	if v.Type() != Number {
		return 0
	}
	if n, err := strconv.ParseUint(string(v), 10, 53); err == nil { // nearly all of them
		return float64(n)
	}
	f, _ := strconv.ParseFloat(string(v), 64)
	return f
}

// Str is the text of a string; empty if the value is none.
func (v Value) Str() string { return Unescape(v.Quoted()) }

// Quoted is what stands between the quotes of a string, escapes and all; empty if the value is none.
func (v Value) Quoted() string {
	if v == "" || v[0] != '"' {
		return ""
	}
	return strings.TrimSuffix(string(v[1:]), `"`)
}

// ForEach calls f with each member of an object, each item of an array, or with the value itself if it is neither, until f says
// false. A key comes without escapes; items have none.
func (v Value) ForEach(f func(key string, v Value) bool) {
	switch {
	case v.IsObject():
		Members(string(v), func(key, value string) bool { return f(Unescape(key), Value(value)) })
	case v.IsArray():
		Items(string(v), func(value string) bool { return f("", Value(value)) })
	case v.Exists():
		f("", v)
	}
}

// Get finds a member by its path, such as usage.input_tokens: the first that is there.
func (v Value) Get(path string) (found Value) {
	head, rest, nested := strings.Cut(path, ".")
	Members(string(v), func(key, value string) bool {
		if Unescape(key) != head {
			return true
		}
		if found = Value(value); nested {
			found = found.Get(rest)
		}
		return !found.Exists()
	})
	return found
}
