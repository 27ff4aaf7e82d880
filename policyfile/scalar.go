// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// A scalarSetter may be written as a word as well as a mapping or a list.
type scalarSetter interface{ SetScalar(string) error }

// textOf gives the text of a scalar as it is written; a quoted one without its quotes.
func textOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		if n.Value == nil {
			return "", true
		}
		return n.Value.Value, true
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.NullNode:
		return "", false
	case ast.ScalarNode:
		return nameOf(n), true
	}
	return "", false
}

// setterOf gives how to set v from a text, nil if it cannot be, and whether there is no other way.
func setterOf(v reflect.Value) (set func(string) error, only bool) {
	switch p := v.Addr().Interface().(type) {
	case scalarSetter:
		return p.SetScalar, false
	case encoding.TextUnmarshaler:
		return func(s string) error { return p.UnmarshalText([]byte(s)) }, true
	}
	switch v.Kind() {
	case reflect.String:
		return func(s string) error { v.SetString(s); return nil }, true
	case reflect.Bool:
		return func(s string) error { return setBool(v, s) }, true
	case reflect.Float64:
		return func(s string) error { return setFloat(v, s) }, true
	}
	return nil, false
}

func setBool(v reflect.Value, s string) error {
	switch s {
	case "true", "True", "TRUE":
		v.SetBool(true)
	case "false", "False", "FALSE":
		v.SetBool(false)
	default:
		return fmt.Errorf("%q: write true or false", s)
	}
	return nil
}

// setFloat reads a number of zero or more, as all are. Its digits may be grouped as those of a count.
func setFloat(v reflect.Value, s string) error {
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil || f < 0 || strings.Trim(s, "0123456789.eE+-_") != "" || strings.HasPrefix(s, "_") {
		return fmt.Errorf("%q is no number of 0 or more: write a number such as 0.7", s)
	}
	v.SetFloat(f)
	return nil
}

// text sets a value from a text.
func (r *reader) text(s string, set func(string) error, path string) bool {
	if len(s) > maxText {
		r.fail(path, r.places[path], fmt.Sprintf("a value of more than %d bytes", maxText), "")
		return false
	}
	if err := set(s); err != nil {
		problem, hint := hinted(err, s)
		r.fail(path, r.places[path], problem, hint)
		return false
	}
	return true
}

// mismatch notes a node of the wrong kind.
func (r *reader) mismatch(n ast.Node, t reflect.Type, path string) {
	text, isText := textOf(n)
	found, expected, hint := kindOf(n), "one value", r.wanted(t)
	_, only := setterOf(reflect.New(t).Elem())
	switch {
	case only:
	case t.Kind() == reflect.Slice:
		expected = "a list"
		if isText && len(text) < 80 {
			hint = "write [" + text + "]"
		}
	default:
		expected = "a mapping"
		member := path[strings.LastIndex(path, ".")+1:]
		if t.Kind() == reflect.Struct && isText && slices.Contains(r.fieldsOf(t).names, member) {
			hint = fmt.Sprintf("write it under a name, such as default: {%s: %s}", member, text)
		}
	}
	r.fail(path, r.places[path], fmt.Sprintf("%s where %s is expected", found, expected), hint)
}

func kindOf(n ast.Node) string {
	switch n.(type) {
	case ast.MapNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	}
	return "one value"
}
