// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/policy"
)

func compileSchema(t testing.TB, doc any) *jsonschema.Schema {
	t.Helper()
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("weir.json", tree); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("weir.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON reads YAML as an editor does; false: it is none.
func asJSON(text []byte) (v any, ok bool) {
	defer func() {
		if recover() != nil { // the YAML library does not bear some of the bad ones
			v, ok = nil, false
		}
	}()
	if yaml.Unmarshal(text, &v) != nil {
		return nil, false
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, false
	}
	v, err = jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	return v, err == nil
}

var yamlBlocks = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$|<<'YAML'\n(.*?)^YAML$")

// What weir takes, the schema takes: the policies of the tests and all of the docs.
func TestSchemaTakesWhatIsGood(t *testing.T) {
	s := compileSchema(t, json.RawMessage(Schema()))
	var texts [][]byte
	for _, file := range good(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(string(data), "\n----\n")
		texts = append(texts, []byte(text))
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlBlocks.FindAllSubmatch(data, -1) {
			texts = append(texts, append(m[1], m[2]...))
		}
	}
	n := 0
	for _, text := range texts {
		r, err := Parse("policy.yaml", text)
		tree, ok := asJSON(text)
		if err != nil || !ok {
			continue // a piece of a policy, or of something else
		}
		n++
		if err := s.Validate(tree); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		if own, err := jsonschema.UnmarshalJSON(strings.NewReader(string(r.JSON))); err != nil || s.Validate(own) != nil && !strings.Contains(string(r.JSON), `"shifts"`) {
			t.Errorf("as weir writes it: %v\n%s", s.Validate(own), r.JSON)
		}
	}
	if n < 15 {
		t.Errorf("only %d policies", n)
	}
}

// Of what is wrong with the bad policies the schema sees what is in the form: keys, kinds and words.
func TestSchemaRefusesWhatIsBad(t *testing.T) {
	s := compileSchema(t, json.RawMessage(Schema()))
	form := regexp.MustCompile(`: unknown key|: unknown value|where .* is expected|is no (count|size|share|duration|window|growth|mode|source|burst|number)|: apiVersion: missing`)
	seen := 0
	files, err := filepath.Glob("testdata/bad/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, says, _ := strings.Cut(string(data), "\n----\n")
		tree, ok := asJSON([]byte(text))
		if !ok || !form.MatchString(says) || strings.Contains(says, "not YAML") {
			continue
		}
		seen++
		if s.Validate(tree) == nil {
			t.Errorf("%s is taken:\n%s%s", file, text, says)
		}
	}
	if seen < 20 {
		t.Errorf("only %d bad policies", seen)
	}
}

// Whatever text a value is read from, the schema takes it.
func TestSchemaForms(t *testing.T) {
	words := []string{
		"sliding", "continuous", "fixed", "subwindows", "enforce", "shadow", "off", "header X-Tenant", "api-key", "body user.name", "default x",
		"UTC", "America/Los_Angeles 04:00", "claim a.b", "peer", "source-ip", "trace-id", "baggage tree", "0", "", "5%/30s", "25%", "30_000", "64KiB", "1h30m",
	}
	for typ, form := range forms {
		s := compileSchema(t, form)
		v := reflect.New(typ).Interface().(encoding.TextUnmarshaler)
		taken := 0
		try := func(t interface{ Errorf(string, ...any) }, text string) {
			if v.UnmarshalText([]byte(text)) != nil {
				return
			}
			taken++
			if err := s.Validate(any(text)); err != nil {
				t.Errorf("%v: %q is taken, but: %v", typ, text, err)
			}
		}
		for _, w := range words {
			try(t, w)
		}
		if taken == 0 {
			t.Errorf("%v: nothing was tried", typ)
		}
		rapid.Check(t, func(t *rapid.T) {
			try(t, rapid.OneOf(
				rapid.StringMatching(`[0-9]{1,3}(_[0-9]{3})?( ?(KiB|MiB|GiB|B))?`), rapid.StringMatching(`[0-9]{1,2}(\.[0-9])?%(/[0-9]{1,2}(s|m|h|d))?`),
				rapid.StringMatching(`([0-9]d)?([0-9]{1,2}h)?([0-9](\.5)?m)?([0-9]{1,2}(s|ms|us))?`), rapid.String(),
			).Draw(t, "text"))
		})
	}
	var missing []string
	for _, typ := range textTypes(reflect.TypeFor[policy.Spec](), nil) {
		if _, ok := forms[typ]; !ok {
			missing = append(missing, typ.String())
		}
	}
	if len(missing) > 0 {
		t.Errorf("no form for %v", missing)
	}
}

// textTypes are those below t that have a text form.
func textTypes(t reflect.Type, list []reflect.Type) []reflect.Type {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
		return list
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		return textTypes(t.Elem(), list)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			list = textTypes(f.Type, list)
		}
	}
	return list
}

// Words are found wherever the compiler asks for one of some.
func TestSchemaWords(t *testing.T) {
	for path, want := range map[string]string{
		"on_error": "[deny allow]", "providers.*.dialect": "[openai anthropic gemini bedrock cohere mistral ollama generic]", "classes.*.on_limit": "[deny queue degrade spill]",
		"routes.[].on_limit": "[deny queue degrade spill]", "log.admit": "[off debug info warn]", "queue.order": "[priority weighted]", "settle.uncertain": "[refund keep]",
		"limits.tree.*.on_retries_spent": "[deny degrade]", "providers.*.stream.include_usage": "[keep add]", "providers.*.adapt.climb": "[steady fast]",
		"output.reserve": "[declared learned]", "secret": "[]", "providers.*.upstream": "[]",
	} {
		if got := fmt.Sprint(wordsAt(strings.Split(path, "."))); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
