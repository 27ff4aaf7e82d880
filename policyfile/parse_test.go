// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy"
)

const head = "apiVersion: weir/v1\nproviders:\n  openai: {upstream: https://api.openai.com}\n"

func ptr[T any](v T) *T { return &v }

func limitsOf(t *testing.T, text string) *policy.Spec {
	t.Helper()
	r, err := Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r.Spec
}

// Scalars are read as they are written, whatever YAML 1.1 or 1.2 would make of them.
func TestScalars(t *testing.T) {
	got := limitsOf(t, head+`
mode: off
on_error: "allow"
secret: 007	# a tab before a comment
limits:
  tenant:
    7: {rpm: "30_000", tpm: 30_000, rps: 010, usd_per_day: 1_000.50}
    1.50: {tpd: 5, window: 7d, burst: 12.5%, mode: shadow}
  environment:
    off: {share: 20%, rpm: 5}
endpoints:	True
body: {parse: 1MiB, hold: 2MiB}
fleet: {jitter: 0s}
families: {
  "gpt-*": o200k,   # a comment
  ? claude-x
  : claude,
}
degrade:
  a: >-
    b
  c: |-
    d
`)
	want := &policy.Spec{
		APIVersion: "weir/v1", Mode: policy.Off, OnError: "allow", Secret: "007", Endpoints: ptr(true),
		Providers: map[string]policy.ProviderSpec{"openai": {Upstream: "https://api.openai.com"}},
		Limits: policy.LimitsSpec{
			Tenant: map[string]*policy.LimitSpec{
				"7": {RPM: ptr(policy.Count(30000)), TPM: ptr(policy.Count(30000)), RPS: ptr(policy.Count(10)), USDPerDay: 1000.5},
				"1.50": {
					TPD: ptr(policy.Count(5)), Window: &policy.Window{Length: policy.Duration(7 * 24 * time.Hour)},
					Burst: &policy.Burst{Share: policy.Whole / 8}, Mode: policy.Shadow,
				},
			},
			Environment: map[string]*policy.EnvironmentSpec{
				"off": {Share: policy.Whole / 5, LimitSpec: policy.LimitSpec{RPM: ptr(policy.Count(5))}},
			},
		},
		Body: policy.BodySpec{Parse: ptr(policy.Size(1 << 20)), Hold: ptr(policy.Size(2 << 20))}, Fleet: policy.FleetSpec{Jitter: ptr(policy.Duration(0))},
		Families: map[string]string{"gpt-*": "o200k", "claude-x": "claude"}, Degrade: map[string]*policy.DegradeSpec{"a": {Model: "b"}, "c": {Model: "d"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// An alias stands for what the last anchor of its name before it has, wherever that is.
func TestAliases(t *testing.T) {
	got := limitsOf(t, head+`
limits:
  tool:
    a: {rps: &n 1}
    b: &l {rps: *n}
    c: &n {rps: 2}
    d: *n
    e: *l
`).Limits.Tool
	for name, want := range map[string]policy.Count{"a": 1, "b": 1, "c": 2, "d": 2, "e": 1} {
		if l := got[name]; l == nil || l.RPS == nil || *l.RPS != want {
			t.Errorf("%s: got %+v, want rps %d", name, l, want)
		}
	}
	if got["b"] == got["e"] {
		t.Error("an alias shares the value of its anchor")
	}
}

// A file from an editor of another system has the same places.
func TestLineEnds(t *testing.T) {
	text := head + "trust: # whom\n  - all\n"
	for _, s := range []string{text, "\ufeff" + text, strings.ReplaceAll(text, "\n", "\r\n"), strings.ReplaceAll(text, "\n", "\r")} {
		r, err := Parse("policy.yaml", []byte(s))
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Notices) != 1 || r.Notices[0].Line != 5 || r.Notices[0].Column != 5 {
			t.Errorf("%q: got %v", s, r.Notices)
		}
	}
}

// What is too much is refused before it costs much.
func TestBounds(t *testing.T) {
	var tenants, aliases strings.Builder
	for i := range 10_001 {
		fmt.Fprintf(&tenants, "k%d: v\n", i)
	}
	aliases.WriteString(head + "limits:\n  tenant:\n    t0: &l {rps: 1, rpm: 1, rph: 1, rpd: 1, tpm: 1, tph: 1, tpd: 1, itpm: 1, otpm: 1}\n  user: {")
	for i := range 30_000 {
		fmt.Fprintf(&aliases, "u%d: *l, ", i)
	}
	aliases.WriteString("}\n")
	for name, c := range map[string]struct{ text, want string }{
		"nothing":   {"", "policy.yaml:1:1: no policy in the file (docs/policy.md has one to start from)"},
		"size":      {strings.Repeat(" ", MaxSize+1), "policy.yaml:1:1: more than 1048576 bytes"},
		"depth":     {strings.Repeat("[{a: ", MaxSize/5), "policy.yaml:1:81: nested more than 32 deep"},
		"dashes":    {strings.Repeat("- ", MaxSize/2), "policy.yaml:1:65: nested more than 32 deep"},
		"questions": {strings.Repeat("? ", MaxSize/2), "policy.yaml:1:65: nested more than 32 deep"},
		"block":     {tenants.String(), "policy.yaml:10001:7: more than 10000 keys and items on lines of their own (write long mappings within braces)"},
		"aliases":   {aliases.String(), "more than 200000 values"},
		"utf8":      {"a: é\xff\n", "policy.yaml:1:5: not YAML: a byte that is no UTF-8 (save the file as UTF-8)"},
	} {
		start := time.Now()
		_, err := Parse("policy.yaml", []byte(c.text))
		if err == nil || err.Error() != c.want && !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}

// A large policy is read in reasonable time.
func TestLarge(t *testing.T) {
	var b strings.Builder
	b.WriteString(head + "limits:\n  tenant:\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "    tenant-%d: {rpm: %d, tpm: 2_000}\n", i, i+1)
	}
	if got := limitsOf(t, b.String()).Limits.Tenant; len(got) != 3000 {
		t.Errorf("got %d tenants", len(got))
	}
}

// FuzzParse: no input makes it panic, or say yes and no at once, or place an error outside of the file; what is accepted
// reaches the filter as it is.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.txt", "testdata/notice/*.txt", "testdata/policy.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			text, _, _ := strings.Cut(string(data), "\n----\n")
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse("f", data)
		if (r == nil) == (err == nil) {
			t.Fatalf("result %v, error %v", r, err)
		}
		if err != nil {
			checkErrors(t, data, err)
			return
		}
		back, err := policy.Decode(r.JSON)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, r.Spec) {
			t.Errorf("spec  %+v\nback %+v\n%s", r.Spec, back, r.JSON)
		}
	})
}

func checkErrors(t *testing.T, data []byte, err error) {
	list := Errors(err)
	if len(list) == 0 || len(list) != len(flatten(err)) {
		t.Fatalf("errors of another kind: %v", err)
	}
	lines := 1 + strings.Count(string(data), "\n") + strings.Count(string(data), "\r")
	for i, e := range list {
		if e.Line < 1 || e.Line > lines || e.Column < 1 || e.Problem == "" || i > 0 && e.Line < list[i-1].Line {
			t.Errorf("error %d of %d in %d lines: %+v", i, len(list), lines, e)
		}
		if strings.Contains(e.Problem, "the parser failed") {
			t.Logf("recovered: %v", e)
		}
	}
}
