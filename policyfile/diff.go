// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirproxy/weir/policy"
)

// A Change is a field that two policies say differently.
type Change struct {
	Path    string `json:"path"`
	Was, Is string // empty: it is not there
}

func (c Change) String() string {
	switch {
	case c.Was == "":
		return c.Path + ": new, " + c.Is
	case c.Is == "":
		return c.Path + ": gone, it was " + c.Was
	}
	return c.Path + ": " + c.Was + " -> " + c.Is
}

// Diff says what has changed from one policy to another, by path. What is secret, or longer than a line, is not shown.
func Diff(was, is *Result) (changes []Change) {
	a, b := map[string]string{}, map[string]string{}
	leaves(was.JSON, a)
	leaves(is.JSON, b)
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if a[path] != b[path] {
			changes = append(changes, Change{path, shown(path, a[path]), shown(path, b[path])})
		}
	}
	return changes
}

// leaves notes each value of a policy by its path.
func leaves(policy []byte, to map[string]string) {
	var tree any
	if json.Unmarshal(policy, &tree) == nil { // it was written by Encode
		leavesOf("", tree, to)
	}
}

func leavesOf(path string, v any, to map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			leavesOf(policy.Join(path, name), member, to)
		}
	case []any:
		for i, element := range v {
			leavesOf(item(path, i), element, to)
		}
	default:
		to[path] = fmt.Sprint(v)
	}
}

func shown(path, value string) string {
	switch {
	case path == "secret" && value != "":
		return "(secret)"
	case len(value) > 80 || strings.ContainsAny(value, "\r\n"):
		return fmt.Sprintf("(%d bytes)", len(value))
	}
	return value
}
