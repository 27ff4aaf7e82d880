// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/policy"
)

// writeYAML writes a policy in a style that chance decides: blocks or braces, quotes or none, comments.
func writeYAML(t *rapid.T, s *policy.Spec) string {
	data, err := policy.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	w := &writer{t: t}
	w.node(tree, 0, w.chance(10))
	return strings.TrimLeft(w.String(), "\n") + "\n"
}

type writer struct {
	t *rapid.T
	strings.Builder
}

// chance is true once in n times.
func (w *writer) chance(n int) bool { return rapid.IntRange(1, n).Draw(w.t, "style") == n }

func (w *writer) node(v any, indent int, braces bool) {
	braces = braces || indent > 0 && w.chance(3)
	switch v := v.(type) {
	case map[string]any:
		if reflect.DeepEqual(v, map[string]any{"off": true}) && w.chance(2) {
			w.WriteString(" off") // the short form of adapt
			return
		}
		w.mapping(v, indent, braces || len(v) == 0)
	case []any:
		if reflect.DeepEqual(v, []any{"*"}) {
			w.WriteString(" allow") // the short form of unmetered; nothing else has this list
			return
		}
		w.list(v, indent, braces)
	case string:
		w.WriteString(" " + w.scalar(v))
	default:
		fmt.Fprintf(w, " %v", v)
	}
}

func (w *writer) mapping(m map[string]any, indent int, braces bool) {
	keys := slices.Sorted(maps.Keys(m))
	if braces {
		w.WriteString(" {")
		for i, k := range keys {
			w.between(i, indent)
			w.WriteString(w.key(k) + ":")
			w.node(m[k], indent+2, true)
		}
		w.WriteString("}")
		return
	}
	for _, k := range keys {
		w.line(indent)
		w.WriteString(w.key(k) + ":")
		w.node(m[k], indent+2, false)
	}
}

func (w *writer) list(l []any, indent int, braces bool) {
	if braces {
		w.WriteString(" [")
		for i, v := range l {
			w.between(i, indent)
			w.node(v, indent+2, true)
		}
		w.WriteString("]")
		return
	}
	for _, v := range l {
		w.line(indent)
		w.WriteString("-")
		w.node(v, indent+2, true)
	}
}

func (w *writer) between(i, indent int) {
	if i > 0 {
		w.WriteString(", ")
	}
	if w.chance(8) {
		w.line(indent + 2)
	}
}

func (w *writer) line(indent int) {
	if w.chance(8) {
		w.WriteString("   # a comment: {not a policy}")
	}
	w.WriteString("\n" + strings.Repeat(" ", indent))
}

var (
	plain  = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9_./%*-]*( [A-Za-z0-9][A-Za-z0-9_.*-]*)*$`)
	digits = regexp.MustCompile(`^[1-9][0-9]{3,}$`)
)

func (w *writer) key(k string) string {
	if k == "42" || k == "007" || k == "1.50" { // not to be grouped
		return k
	}
	return w.scalar(k)
}

func (w *writer) scalar(s string) string {
	switch {
	case plain.MatchString(s) && s != "null" && !w.chance(4):
		if digits.MatchString(s) && w.chance(2) {
			return s[:len(s)-3] + "_" + s[len(s)-3:]
		}
		return s
	case w.chance(2):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	default:
		data, _ := json.Marshal(s)
		return string(data)
	}
}
