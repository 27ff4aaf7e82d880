// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/weirproxy/weir/policy"
)

// Schema gives the JSON Schema of policies, for editors: keys, forms of values, and words. It is made of the types that a policy is
// read into, and the words are those that the compiler asks for. What it refuses weir refuses; weir looks at more.
func Schema() []byte {
	s := schemaOf(reflect.TypeFor[policy.Spec](), nil)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Policy of weir"
	s["properties"].(schema)["apiVersion"] = schema{"const": policy.APIVersion}
	s["required"] = []string{"apiVersion", "providers"}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // it is made of maps, lists and texts
	}
	return append(b, '\n')
}

// A schema is one for a value.
type schema = map[string]any

// counted is how counts are written.
const counted = `[0-9]+(_[0-9]+)*`

// forms are how the values look that have a text form of their own.
var forms = map[reflect.Type]schema{
	reflect.TypeFor[policy.Count]():    {"anyOf": []schema{{"type": "integer", "minimum": 0}, pattern(counted)}},
	reflect.TypeFor[policy.Size]():     {"anyOf": []schema{{"type": "integer", "minimum": 0}, pattern(counted + ` *(B|KiB|MiB|GiB)?`)}},
	reflect.TypeFor[policy.Share]():    pattern(`[0-9.]+%`),
	reflect.TypeFor[policy.Duration](): {"anyOf": []schema{{"const": 0}, pattern(duration)}},
	reflect.TypeFor[policy.Window]():   pattern(`sliding|continuous|fixed|subwindows|` + duration),
	reflect.TypeFor[policy.Burst]():    {"anyOf": []schema{{"type": "integer", "minimum": 0}, pattern(counted + `|[0-9.]+%`)}},
	reflect.TypeFor[policy.Growth]():   pattern(`[0-9.]+%/` + duration),
	reflect.TypeFor[policy.Mode]():     {"enum": []string{"enforce", "shadow", "off"}},
	reflect.TypeFor[policy.Reset]():    schema{"type": "string", "pattern": `\S`},
	reflect.TypeFor[policy.Source]():   pattern(`(api-key|peer|source-ip|trace-id) *|(header|body|claim|baggage|default) +[^ ]+ *`),
}

// duration is how Go writes them, with days before.
const duration = `(-?0|(` + counted + `d)?-?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*)`

func pattern(p string) schema { return schema{"type": "string", "pattern": "^(" + p + ")$"} }

// short are what may stand for a whole mapping or list.
var short = map[reflect.Type]schema{
	reflect.TypeFor[policy.DegradeSpec](): {"type": "string"},
	reflect.TypeFor[policy.StaticSpec]():  {"type": "string"},
	reflect.TypeFor[policy.SpillSpec]():   {"type": "string"},
	reflect.TypeFor[policy.Unmetered]():   {"enum": []string{"deny", "allow"}},
	reflect.TypeFor[policy.AdaptSpec]():   {"enum": []any{"off", false}},
}

// schemaOf gives the schema of a type; path is where a value of it stands, for the words that are known there.
func schemaOf(t reflect.Type, path []string) schema {
	if t.Kind() == reflect.Pointer {
		return schemaOf(t.Elem(), path)
	}
	if s, ok := forms[t]; ok {
		return s
	}
	s := schema{}
	switch t.Kind() {
	case reflect.Struct:
		properties := schema{}
		for name, f := range newReader().fieldsOf(t).byName {
			properties[name] = schemaOf(t.FieldByIndex(f.index).Type, append(path[:len(path):len(path)], name))
		}
		s = schema{"type": "object", "properties": properties, "additionalProperties": false}
	case reflect.Map:
		s = schema{"type": "object", "additionalProperties": schemaOf(t.Elem(), append(path[:len(path):len(path)], "*"))}
	case reflect.Slice:
		s = schema{"type": "array", "items": schemaOf(t.Elem(), append(path[:len(path):len(path)], "[]"))}
	case reflect.Bool:
		s = schema{"enum": []any{true, false, "true", "True", "TRUE", "false", "False", "FALSE"}}
	case reflect.Float64:
		s = schema{"anyOf": []schema{{"type": "number"}, pattern(`[-+.0-9_eE]+`)}}
	case reflect.String:
		s = schema{"type": []string{"string", "number", "boolean"}} // YAML has some words for others
		if words := wordsAt(path); words != nil {
			s = schema{"enum": words}
		}
	}
	if other, ok := short[t]; ok {
		return schema{"anyOf": []schema{s, other}}
	}
	return s
}

// wordsAt asks the compiler which words are known at a path: it hints at them where there is another. Some mappings it only looks at
// when they have a limit, too.
func wordsAt(path []string) []string {
	at := ""
	for i, name := range path {
		switch {
		case name == "[]":
			at = item(at, 0)
		case i == 0:
			at = name
		default:
			at = policy.Join(at, name)
		}
	}
	for _, beside := range []string{"", "calls"} {
		if words := wordsFor(path, at, beside); words != nil {
			return words
		}
	}
	return nil
}

func wordsFor(path []string, at, beside string) []string {
	var tree any = "?"
	for i := len(path) - 1; i >= 0; i-- {
		switch {
		case path[i] == "[]":
			tree = []any{tree}
		case i == len(path)-1 && beside != "":
			tree = map[string]any{path[i]: tree, beside: "1"}
		default:
			tree = map[string]any{path[i]: tree}
		}
	}
	b, err := json.Marshal(tree)
	if err != nil {
		return nil
	}
	spec, err := policy.Decode(b)
	if err != nil {
		return nil
	}
	_, err = policy.Compile(spec)
	for _, err := range flatten(err) {
		var e *policy.FieldError
		if errors.As(err, &e) && e.Path == at && strings.HasPrefix(e.Problem, "unknown value") {
			return strings.Split(strings.Replace(strings.TrimPrefix(e.Hint, "write "), " or ", ", ", 1), ", ")
		}
	}
	return nil
}
