// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/policyfile"
)

// What weir init writes is a policy without errors or notices, for each provider alone and for all together.
func TestInit(t *testing.T) {
	sets := [][]string{startNames(), {"vllm=openai+http://vllm.internal:8000", "weather=http://weather.internal"}, {"openai=https://proxy.example/openai"}}
	for _, name := range startNames() {
		sets = append(sets, []string{name})
	}
	for _, set := range sets {
		args := []string{"init", "-", "--tpm", "200k"}
		for _, p := range set {
			args = append(args, "--provider", p)
		}
		code, out, errs := weir(t, "", args...)
		r, err := policyfile.Parse("policy.yaml", []byte(out))
		if code != 0 || err != nil || len(r.Notices) > 0 || len(r.Policy.Providers) != len(set) {
			t.Errorf("%v: code %d, %v\n%s%s", set, code, err, out, errs)
			continue
		}
		if l := r.Spec.Limits.Tenant["default"]; *l.TPM != 40_000 || len(r.Spec.Secret) < 32 {
			t.Errorf("%v: %+v", set, l)
		}
	}
	_, a, _ := weir(t, "", "init", "-")
	_, b, _ := weir(t, "", "init", "-")
	if a == b {
		t.Error("the same secret twice")
	}
}

// It writes over nothing, and says what it does not know.
func TestInitFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if code, out, errs := weir(t, "", "init", file); code != 0 || !strings.Contains(out, "weir up --policy "+file) {
		t.Fatal(code, out, errs)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if code, out, errs := weir(t, "", "validate", file); code != 0 || errs != "" {
		t.Error(code, out, errs)
	}
	before, _ := os.ReadFile(file)
	for want, args := range map[string][]string{
		"is there already":      {file},
		"did you mean openai":   {"-", "--provider", "opnai"},
		"write one of":          {"-", "--provider", "x"},
		"+50k":                  {"-", "--tpm", "many"},
		"this makes no policy":  {"-", "--provider", "x=nonsense"},
		"something wrong in it": {"-", "--trust", "all"},
	} {
		if code, _, errs := weir(t, "", append([]string{"init"}, args...)...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", want, code, errs)
		}
	}
	if after, _ := os.ReadFile(file); string(before) != string(after) {
		t.Error("it was written over")
	}
	if code, _, errs := weir(t, "", "init", file, "--force"); code != 0 {
		t.Error(errs)
	}
	if after, _ := os.ReadFile(file); string(before) == string(after) {
		t.Error("it was not written over")
	}
}

// On a terminal it asks; an empty answer takes what is proposed.
func TestInitAsks(t *testing.T) {
	c := initCmd{Trust: []string{"10.0.0.0/8"}}
	var asked strings.Builder
	if err := c.ask(streams{strings.NewReader("anthropic, gemini\n\n100_000\n\n"), nil, &asked}); err != nil {
		t.Fatal(err)
	}
	text, err := c.text()
	for _, want := range []string{"  anthropic:", "  gemini:", "rpm: 500, tpm: 100_000", "default: {tpm: 20_000}", "trust: [10.0.0.0/8]"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v, no %q in\n%s", err, want, text)
		}
	}
	if !strings.Contains(asked.String(), "Tokens a minute for each tenant [20_000]") {
		t.Error(asked.String())
	}
	if err := new(initCmd).ask(streams{strings.NewReader(""), nil, &asked}); err == nil {
		t.Error("no answer is one")
	}
}
