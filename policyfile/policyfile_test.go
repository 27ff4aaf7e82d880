// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/policy"
)

var update = flag.Bool("update", false, "rewrite the expected parts of testdata")

// cases runs over the files of a folder: a policy, a line ----, and what is to be said about it.
func cases(t *testing.T, folder string, say func(data []byte) []string) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text, want, _ := strings.Cut(string(data), "\n----\n")
			got := strings.Join(say([]byte(text+"\n")), "\n") + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(text+"\n----\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
		})
	}
}

func TestBad(t *testing.T) {
	cases(t, "bad", func(data []byte) []string {
		r, err := Parse("policy.yaml", data)
		if err == nil || r != nil {
			t.Fatalf("accepted: %v, %v", r, err)
		}
		var lines []string
		for _, e := range Errors(err) {
			lines = append(lines, e.Error())
		}
		if got := strings.Join(lines, "\n"); got != err.Error() {
			t.Errorf("Errors gives\n%s\nbut the error is\n%s", got, err)
		}
		return lines
	})
}

func TestNotices(t *testing.T) {
	cases(t, "notice", func(data []byte) []string {
		r, err := Parse("policy.yaml", data)
		if err != nil {
			t.Fatal(err)
		}
		return texts(r.Notices)
	})
}

func texts(notices []Notice) []string {
	lines := make([]string, len(notices))
	for i, n := range notices {
		lines[i] = n.String()
	}
	return lines
}

// The example is a whole policy: all of it must be accepted, and what does nothing yet must be said.
func TestExample(t *testing.T) {
	r, err := Read("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if r.Policy == nil || r.Spec == nil {
		t.Fatal("no policy")
	}
	got := strings.Join(texts(r.Notices), "\n") + "\n"
	if *update {
		if err := os.WriteFile("testdata/policy.notices", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/policy.notices")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// What the filter gets as JSON is what was written.
func TestJSON(t *testing.T) {
	for _, file := range good(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(string(data), "\n----\n")
		r, err := Parse(file, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := policy.Decode(r.JSON)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, r.Spec) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", file, got, r.Spec)
		}
	}
}

// good lists the files that are accepted.
func good(t testing.TB) []string {
	files, err := filepath.Glob("testdata/notice/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	return append(files, "testdata/policy.yaml")
}

// extras are the keys that the example does without.
var extras = []string{"file", "api", "reply", "shares", "reports", // of a static reply and of the fleet, which the control plane fills in
	"weights", "weight", "priority", "image", "reasoning", "reset",
	"secret", "cluster", "rph", "tph", "itpm", "otpm", "usd_per_month", "burst", "max_output", "climb", "attempts", "borrow", "settle", "uncertain", "off",
	"log", "admit", "deny", "access", "caller",
}

func TestExampleIsWhole(t *testing.T) {
	data, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		for _, word := range strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" {,[\n", c) }) {
			if key, ok := strings.CutSuffix(word, ":"); ok {
				used[key] = true
			}
		}
	}
	for _, key := range keysOf(reflect.TypeFor[policy.Spec](), nil) {
		if used[key] == slices.Contains(extras, key) {
			t.Errorf("key %s: in the example: %v, among the extras: %v", key, used[key], !used[key])
		}
	}
}

// keysOf lists the keys that a type may have, all the way down.
func keysOf(t reflect.Type, keys []string) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		return keysOf(t.Elem(), keys)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				keys = keysOf(f.Type, append(keys, name))
			}
		}
	}
	return keys
}

func TestError(t *testing.T) {
	_, err := Parse("p.yaml", []byte("apiVersion: weir/v1\nmode: of\n"))
	list := Errors(err)
	if len(list) != 2 || list[0].Line != 1 || list[1].Path != "mode" {
		t.Fatalf("got %v", list)
	}
	var field *policy.FieldError
	if !errors.As(list[1], &field) || field.Path != "mode" || field.Hint == "" {
		t.Errorf("unwrapped: %+v", field)
	}
	if Errors(nil) != nil || Errors(errors.New("other")) != nil {
		t.Error("errors out of nothing")
	}
}

func TestRead(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "policy.yaml")
	if _, err := Read(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if err := os.WriteFile(missing, make([]byte, 2*MaxSize), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(missing); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("too large: %v", err)
	}
}
