// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weirproxy/weir/policy"
)

// members goes through a mapping with the name, the value and the path of each member.
func (r *reader) members(n ast.MapNode, path string, each func(name string, member ast.Node, path string)) {
	seen := map[string]place{}
	for it := n.MapRange(); it.Next(); {
		name, ok := r.key(it.Key(), path)
		if !ok {
			continue
		}
		path, at := policy.Join(path, name), placeOf(it.Key())
		if first, ok := seen[name]; ok {
			r.fail(path, at, "written twice, first in "+r.lineOf(first, at), "leave one out")
			continue
		}
		seen[name] = at
		r.places[path] = at
		each(name, it.Value(), path)
	}
}

// key gives the text of a key.
func (r *reader) key(n ast.Node, path string) (string, bool) {
	at := placeOf(n)
	if k, ok := n.(*ast.MappingKeyNode); ok {
		n = k.Value
	}
	n, ok := r.resolve(n, path)
	if !ok {
		return "", false
	}
	text, ok := textOf(n)
	_, merge := n.(*ast.MergeKeyNode)
	switch {
	case merge:
		r.fail(path, at, "a merge key", "write the members out, or an alias in place of the whole mapping")
	case isNull(n):
		r.fail(path, at, "no key before the colon", "a key that reads null needs quotes")
	case !ok:
		r.fail(path, at, "a key that is no text", "")
	case len(text) > maxText:
		r.fail(path, at, fmt.Sprintf("a key of more than %d bytes", maxText), "")
	default:
		return text, true
	}
	return "", false
}

// unknown notes a key that a mapping does not know. What was meant counts as broken too, lest it be called missing.
func (r *reader) unknown(path, name string, names []string) {
	hint := "known here: " + strings.Join(names, ", ")
	if strings.Trim(name, "0123456789") == "" && name != "" {
		hint = "a comma ends a value: write 40_000 for 40,000"
	} else if meant, ok := similar(name, names); ok {
		hint = "did you mean " + meant + "?"
		r.failed[policy.Join(path, meant)] = true
	}
	path = policy.Join(path, name)
	r.fail(path, r.places[path], "unknown key", hint)
}

// A fieldSet is the fields of a struct by the names that JSON gives them.
type fieldSet struct {
	byName map[string]field
	names  []string
}

type field struct {
	index []int
}

// fieldsOf gives the fields of a struct, those of embedded ones included.
func (r *reader) fieldsOf(t reflect.Type) fieldSet {
	if s, ok := r.fields[t]; ok {
		return s
	}
	s := fieldSet{byName: map[string]field{}}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" { // an embedded struct, whose fields come by themselves
			continue
		}
		s.byName[name] = field{f.Index}
		s.names = append(s.names, name)
	}
	r.fields[t] = s
	return s
}
