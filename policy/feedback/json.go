// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"iter"
	"strings"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// members are the keys and raw values of an object.
func members(object string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) { jsonwalk.Members(object, yield) }
}

// items are the raw values of an array; of anything else, itself.
func items(array string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if i := jsonwalk.SkipSpace(array, 0); i == len(array) || array[i] != '[' {
			yield(array)
			return
		}
		jsonwalk.Items(array, yield)
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
