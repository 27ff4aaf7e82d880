// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml/ast"

	"github.com/weirproxy/weir/policy"
)

// value decodes a node into v, which can be set, and says whether it has set it, if only in part.
func (r *reader) value(n ast.Node, v reflect.Value, path string) bool {
	if r.values++; r.values > maxValues {
		if r.values == maxValues+1 {
			r.fail("", r.places[path], fmt.Sprintf("more than %d values", maxValues), "")
		}
		return false
	}
	written := n
	n, ok := r.resolve(n, path)
	if !ok {
		return false
	}
	if isNull(n) {
		r.fail(path, r.places[path], "no value", r.wanted(v.Type())+", or leave it out")
		return false
	}
	if _, ok := textOf(n); ok {
		r.places[path] = placeOf(written)
	}
	if v.Kind() != reflect.Pointer {
		return r.typed(n, v, path)
	}
	p := reflect.New(v.Type().Elem())
	if !r.typed(n, p.Elem(), path) {
		return false
	}
	v.Set(p)
	return true
}

// typed decodes a node that is neither null nor an alias into v, which is no pointer.
func (r *reader) typed(n ast.Node, v reflect.Value, path string) bool {
	set, only := setterOf(v)
	text, isText := textOf(n)
	if isText && set != nil {
		return r.text(text, set, path)
	}
	switch m := n.(type) {
	case ast.MapNode:
		if v.Kind() == reflect.Struct && !only {
			r.structure(m, v, path)
			return true
		}
		if v.Kind() == reflect.Map {
			r.mapping(m, v, path)
			return true
		}
	case *ast.SequenceNode:
		if v.Kind() == reflect.Slice {
			return r.list(m, v, path)
		}
	}
	r.mismatch(n, v.Type(), path)
	return false
}

// structure decodes a mapping whose keys are known.
func (r *reader) structure(n ast.MapNode, v reflect.Value, path string) {
	fields := r.fieldsOf(v.Type())
	r.members(n, path, func(name string, member ast.Node, at string) {
		f, ok := fields.byName[name]
		if !ok {
			r.unknown(path, name, fields.names)
			return
		}
		r.value(member, v.FieldByIndex(f.index), at)
	})
}

// mapping decodes a mapping whose keys are names. An empty one is the same as none.
func (r *reader) mapping(n ast.MapNode, v reflect.Value, path string) {
	m := reflect.MakeMap(v.Type())
	r.members(n, path, func(name string, member ast.Node, path string) {
		e := reflect.New(v.Type().Elem()).Elem()
		if r.value(member, e, path) {
			m.SetMapIndex(reflect.ValueOf(name), e)
		}
	})
	if m.Len() > 0 {
		v.Set(m)
	}
}

// list decodes a list. An empty one is the same as none, except that no source at all would mean the default ones.
func (r *reader) list(n *ast.SequenceNode, v reflect.Value, path string) bool {
	if _, ok := v.Interface().([]policy.Source); ok && len(n.Values) == 0 {
		r.fail(path, r.places[path], "an empty list", "leave it out for the usual sources, or write [default NAME]")
		return false
	}
	for i, element := range n.Values {
		path := item(path, i)
		r.places[path] = itemPlace(n, i)
		e := reflect.New(v.Type().Elem()).Elem()
		if r.value(element, e, path) {
			v.Set(reflect.Append(v, e))
		}
	}
	return true
}

// itemPlace gives where an item stands; of an empty one, its dash.
func itemPlace(n *ast.SequenceNode, i int) place {
	if isNull(n.Values[i]) && i < len(n.Entries) && n.Entries[i].Start != nil {
		return tokenPlace(n.Entries[i].Start)
	}
	return placeOf(n.Values[i])
}
