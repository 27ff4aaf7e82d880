// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// The filter reads its policy with what follows, without reflection: encoding/json would be a tenth of the code that each worker
// of each Envoy loads. Each type of a spec lists its fields, see specfields.go.

// Decode reads a spec from JSON, as [Encode] writes it. Unknown members are errors.
func Decode(data []byte) (*Spec, error) {
	text := string(data)
	if at := jsonwalk.Invalid(text); at >= 0 {
		return nil, fmt.Errorf("policy: no JSON from byte %d on", at)
	}
	v := jsonwalk.Parse(text)
	if !v.IsObject() {
		return nil, errors.New("policy: no JSON object")
	}
	s := new(Spec)
	if err := decode("", v, s); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return s, nil
}

// A field is a member of an object and a pointer to where it goes.
type field struct {
	name string
	to   any
}

// What a pointer may be to, beside strings, bools and numbers.
type (
	textual  interface{ UnmarshalText([]byte) error }
	object   interface{ fields() []field }
	nullable interface { // see optional, mapOf and listOf
		decode(path string, v jsonwalk.Value) error
		null()
	}
)

// A group is an object that has no type of its own.
type group []field

func (g group) fields() []field { return g }

// decode reads a value of valid JSON. What is null changes nothing, as with encoding/json.
func decode(path string, v jsonwalk.Value, to any) (err error) {
	null := v == "null"
	switch to := to.(type) {
	case **LimitSpec:
		return decode(path, v, optional[LimitSpec]{to})
	case **EnvironmentSpec:
		return decode(path, v, optional[EnvironmentSpec]{to})
	case **TreeSpec:
		return decode(path, v, optional[TreeSpec]{to})
	case **DegradeSpec:
		return decode(path, v, optional[DegradeSpec]{to})
	case **SpillSpec:
		return decode(path, v, optional[SpillSpec]{to})
	case nullable:
		if null {
			to.null()
			return nil
		}
		return to.decode(path, v)
	}
	if null {
		return nil
	}
	switch to := to.(type) {
	case object:
		return decodeObject(path, v, to.fields())
	case textual:
		if v.Type() != jsonwalk.String {
			return wrongKind(path, v, "a string")
		}
		err = to.UnmarshalText([]byte(valid(v.Str())))
	case *string:
		if *to = valid(v.Str()); v.Type() != jsonwalk.String {
			return wrongKind(path, v, "a string")
		}
	case *bool:
		if *to = v.Type() == jsonwalk.True; !*to && v.Type() != jsonwalk.False {
			return wrongKind(path, v, "true or false")
		}
	case *float64:
		if *to, err = strconv.ParseFloat(string(v), 64); v.Type() != jsonwalk.Number {
			return wrongKind(path, v, "a number")
		}
	}
	if err != nil {
		return &FieldError{Path: path, Problem: err.Error()}
	}
	return nil
}

func decodeObject(path string, v jsonwalk.Value, fields []field) (err error) {
	if !v.IsObject() {
		return wrongKind(path, v, "an object")
	}
	v.ForEach(func(key string, v jsonwalk.Value) bool {
		for _, f := range fields {
			if f.name == key {
				err = decode(Join(path, key), v, f.to)
				return err == nil
			}
		}
		err = &FieldError{Path: Join(path, valid(key)), Problem: "unknown field"}
		return false
	})
	return err
}

// valid is a string as encoding/json reads it: each byte that is no UTF-8 becomes U+FFFD.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func wrongKind(path string, v jsonwalk.Value, want string) error {
	return &FieldError{Path: path, Problem: "is " + kindNames[v.Type()], Hint: "write " + want}
}

var kindNames = [...]string{
	jsonwalk.Null: "null", jsonwalk.False: "false", jsonwalk.Number: "a number", jsonwalk.String: "a string", jsonwalk.True: "true",
	jsonwalk.JSON: "an object or a list",
}
