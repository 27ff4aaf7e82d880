// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// decodeSlowly is Decode by reflection.
func decodeSlowly(data []byte) (*Spec, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	s := new(Spec)
	if err := d.Decode(s); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more after the JSON object")
	}
	return s, nil
}

// sameAsSlowly compares the two. Keys in another case are the one thing that only encoding/json takes.
func sameAsSlowly(t interface {
	Helper()
	Fatalf(string, ...any)
}, data []byte) {
	t.Helper()
	got, err := Decode(data)
	want, wantErr := decodeSlowly(data)
	switch {
	case err == nil && wantErr == nil && reflect.DeepEqual(got, want):
	case err != nil && (wantErr != nil || strings.HasSuffix(err.Error(), "unknown field") || string(bytes.TrimSpace(data)) == "null"):
	default:
		t.Fatalf("%s:\n%+v, %v; want\n%+v, %v", data, got, err, want, wantErr)
	}
}

// Each type lists each of its fields, by its name in JSON.
func TestFieldsOfSpecs(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(v reflect.Value, listed object)
	var visit func(ty reflect.Type)
	check = func(v reflect.Value, listed object) {
		byName := map[string]any{}
		for _, f := range listed.fields() {
			if byName[f.name] != nil {
				t.Errorf("%v: %s twice", v.Type(), f.name)
			}
			byName[f.name] = f.to
		}
		n := 0
		for _, f := range reflect.VisibleFields(v.Type()) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous {
				continue
			}
			n++
			to := reflect.ValueOf(byName[name])
			inner, isGroup := byName[name].(group)
			switch {
			case !to.IsValid():
				t.Errorf("%v: %s is missing", v.Type(), name)
				continue
			case isGroup:
				check(v.FieldByIndex(f.Index), inner)
				continue
			case to.Kind() == reflect.Struct: // optional, mapOf, listOf
				to = to.Field(0)
			}
			if to.Pointer() != v.FieldByIndex(f.Index).Addr().Pointer() {
				t.Errorf("%v: %s is another field", v.Type(), name)
			}
			visit(f.Type)
		}
		if n != len(byName) {
			t.Errorf("%v: %d fields, it lists %d", v.Type(), n, len(byName))
		}
	}
	visit = func(ty reflect.Type) {
		for ty.Kind() == reflect.Pointer || ty.Kind() == reflect.Map || ty.Kind() == reflect.Slice {
			ty = ty.Elem()
		}
		if ty.Kind() != reflect.Struct || seen[ty] {
			return
		}
		seen[ty] = true
		v := reflect.New(ty)
		if _, ok := v.Interface().(textual); ok {
			return
		}
		listed, ok := v.Interface().(object)
		if !ok {
			t.Fatalf("%v lists no fields", ty)
		}
		check(v.Elem(), listed)
	}
	visit(reflect.TypeFor[Spec]())
	if len(seen) < 25 {
		t.Errorf("only %d types", len(seen))
	}
}

// Random specs, and what becomes of them when something is changed, read as encoding/json reads them.
func TestDecodeRandom(t *testing.T) {
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		b, err := json.Marshal(randomObject(t, reflect.TypeFor[Spec]()))
		if err != nil {
			t.Fatal(err)
		}
		sameAsSlowly(t, b)
		if _, err := Decode(b); err == nil {
			read++
		}
		at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		to := rapid.SampledFrom([]string{`null`, `"x"`, `{`, `}`, `[`, `,`, `1`, `"`, `\u00e9`, "\xff", `1e999`, ``, `"mode":"off",`, `{"tpm":null},`}).Draw(t, "to")
		n := min(rapid.IntRange(0, 6).Draw(t, "n"), len(b)-at)
		sameAsSlowly(t, append(append(bytes.Clone(b[:at]), to...), b[at+n:]...))
	})
	if read < 10 {
		t.Errorf("only %d were right", read)
	}
}

// randomObject makes JSON that a type may have, some of it wrong.
func randomObject(t *rapid.T, ty reflect.Type) any {
	if rapid.IntRange(0, 500).Draw(t, "odd") == 0 {
		return rapid.SampledFrom([]any{"", "x", nil, 7, true, []int{1}, map[string]int{"a": 1}}).Draw(t, "value")
	}
	if to, ok := reflect.New(ty).Interface().(textual); ok {
		text := rapid.SampledFrom([]string{"10", "1_000", "25%", "30s", "5%/30s", "sliding", "enforce", "UTC 04:00", "header x-user", "1MiB"})
		return text.Filter(func(s string) bool { return to.UnmarshalText([]byte(s)) == nil }).Draw(t, "text")
	}
	switch ty.Kind() {
	case reflect.Pointer:
		return randomObject(t, ty.Elem())
	case reflect.String:
		return rapid.SampledFrom([]string{"", "a", "ä\n\"\\", "\u2028"}).Draw(t, "string")
	case reflect.Bool:
		return rapid.Bool().Draw(t, "bool")
	case reflect.Float64:
		return rapid.SampledFrom([]float64{0, 1, -1.5e3, 0.7}).Draw(t, "number")
	case reflect.Map, reflect.Slice:
		list, object := []any{}, map[string]any{}
		for range rapid.IntRange(0, 2).Draw(t, "n") {
			item := randomObject(t, ty.Elem())
			list, object[rapid.SampledFrom([]string{"default", "a.b", "ü \" ", ""}).Draw(t, "key")] = append(list, item), item
		}
		if ty.Kind() == reflect.Map {
			return object
		}
		return list
	}
	object := map[string]any{}
	for _, f := range reflect.VisibleFields(ty) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && rapid.IntRange(0, 2).Draw(t, "has") == 0 {
			object[name] = randomObject(t, f.Type)
		}
	}
	return object
}

func TestDecodeErrors(t *testing.T) {
	for in, want := range map[string]string{
		`{"limits":{"user":{"a.b":{"rpm":60}}}}`:          `policy: limits.user."a.b".rpm: is a number (write a string)`,
		`{"queue":{"entries":"many"}}`:                    `policy: queue.entries: "many" is no count: write a whole number such as 30_000`,
		`{"queue":{"Entries":"1"}}`:                       `policy: queue.Entries: unknown field`,
		`{"routes":[{"match":{"path":"/a","host":"b"}}]}`: `policy: routes.match.host: unknown field`,
		`{"trust":"all"}`:                                 `policy: trust: is a string (write a list)`,
		`{"providers":[]}`:                                `policy: providers: is an object or a list (write an object)`,
		`{"mode":"off"}{}`:                                `policy: no JSON from byte 14 on`,
		`{"hints":{"header":1}}`:                          `policy: hints.header: is a number (write true or false)`,
		`{"limits":{"user":{"a":{"usd_per_day":1e999}}}}`: `policy: limits.user.a.usd_per_day: strconv.ParseFloat: parsing "1e999": value out of range`,
		`[]`:                                 `policy: no JSON object`,
		`{"a":` + strings.Repeat("[", 1<<20): `policy: no JSON from byte 1005 on`,
	} {
		if _, err := Decode([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%.80s: %v\nwant %s", in, err, want)
		}
	}
}
