// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// renderTools counts tools as the TypeScript in which OpenAI's models read them:
//
//	namespace functions {
//
//	// Looks the weather up
//	type weather = (_: {
//	// Where
//	city: string,
//	unit?: "C" | "F",
//	}) => any;
//
//	} // namespace functions
func (r *Reader) renderTools(list jsonwalk.Value) int64 {
	out := r.scratch()
	out.write("namespace functions {\n\n")
	list.ForEach(func(_ string, tool jsonwalk.Value) bool {
		f := tool.Get("function")
		if !f.IsObject() {
			f = tool // as in responses, and in functions
		}
		if custom := tool.Get("custom"); custom.IsObject() {
			f = custom
			out.write(string(f.Get("format"))) // a grammar
		}
		if d := f.Get("description").Str(); d != "" {
			out.write("// " + d + "\n")
		}
		out.write("type " + f.Get("name").Str() + " = (")
		p := readSchema(f.Get("parameters"))
		if p.members > 0 {
			out.write("_: {\n")
			out.properties(&p, 0)
			out.write("\n}")
		}
		out.write(") => any;\n\n")
		return true
	})
	out.write("} // namespace functions")
	return out.text.Count() + toolsFrame
}

// schema is what of a JSON schema is rendered.
type schema struct {
	kind, description         string
	kinds                     jsonwalk.Value // kind, where it is a list
	enum, items, anyOf        jsonwalk.Value
	properties                jsonwalk.Value
	required                  jsonwalk.Value
	members                   int // of properties
	hasItems, hasAny, hasEnum bool
}

func readSchema(v jsonwalk.Value) (s schema) {
	v.ForEach(func(key string, v jsonwalk.Value) bool {
		switch key {
		case "type":
			s.kind, s.kinds = v.Str(), v
		case "description":
			s.description = v.Str()
		case "enum":
			s.enum, s.hasEnum = v, v.IsArray()
		case "items":
			s.items, s.hasItems = v, v.IsObject()
		case "anyOf", "oneOf":
			s.anyOf, s.hasAny = v, v.IsArray()
		case "required":
			s.required = v
		case "properties":
			s.properties = v
			v.ForEach(func(_ string, _ jsonwalk.Value) bool {
				s.members++
				return true
			})
		}
		return true
	})
	if s.kind == "" && s.members > 0 {
		s.kind = "object"
	}
	return s
}

// schemaNesting is how deep a schema is followed: each level is read once more.
const schemaNesting = 8

// properties writes the members of an object. Descriptions below the first level are left out.
func (s *scratch) properties(of *schema, indent int) {
	required := map[string]bool{}
	of.required.ForEach(func(_ string, name jsonwalk.Value) bool {
		required[name.Str()] = true
		return true
	})
	pad, begun := strings.Repeat(" ", indent), false
	line := func() {
		if begun {
			s.write("\n")
		}
		begun = true
		s.write(pad)
	}
	of.properties.ForEach(func(name string, v jsonwalk.Value) bool {
		p := readSchema(v)
		if p.description != "" && indent < 2 {
			line()
			s.write("// " + p.description)
		}
		line()
		s.write(name)
		if !required[name] {
			s.write("?")
		}
		s.write(": ")
		s.kind(&p, indent)
		s.write(",")
		return true
	})
}

// kind writes the type of a value.
func (s *scratch) kind(p *schema, indent int) {
	s.depth++
	defer func() { s.depth-- }()
	switch {
	case s.depth > schemaNesting:
		s.write("any")
	case p.hasAny:
		s.either(p.anyOf, func(v jsonwalk.Value) {
			q := readSchema(v)
			s.kind(&q, indent)
		})
	case p.hasEnum:
		s.either(p.enum, func(v jsonwalk.Value) {
			if v.Type() == jsonwalk.String {
				s.write(`"` + v.Str() + `"`)
			} else {
				s.write(string(v))
			}
		})
	case p.kinds.IsArray():
		s.either(p.kinds, func(v jsonwalk.Value) {
			q := *p
			q.kind, q.kinds = v.Str(), v
			s.kind(&q, indent)
		})
	default:
		s.plainKind(p, indent)
	}
}

func (s *scratch) plainKind(p *schema, indent int) {
	switch p.kind {
	case "string", "boolean", "null", "number":
		s.write(p.kind)
	case "integer":
		s.write("number")
	case "object":
		s.write("{\n")
		s.properties(p, indent+2)
		s.write("\n}")
	case "array":
		if p.hasItems {
			q := readSchema(p.items)
			s.kind(&q, indent)
			s.write("[]")
		} else {
			s.write("any[]")
		}
	default:
		s.write("any")
	}
}

// either writes alternatives.
func (s *scratch) either(list jsonwalk.Value, one func(jsonwalk.Value)) {
	begun := false
	list.ForEach(func(_ string, v jsonwalk.Value) bool {
		if begun {
			s.write(" | ")
		}
		begun = true
		one(v)
		return true
	})
}
