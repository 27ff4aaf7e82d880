// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/policyfile"
)

const learnPolicy = `apiVersion: weir/v1
providers:
  openai:                      # the account of the team
    upstream: https://openai.test
    models:
      gpt-*: {rpm: 100, tpm: 30_000} # as of May
      # all others
      "*": {rpm: 60}
  claude: {upstream: 'https://claude.test', dialect: anthropic, models: {"*": {rpm: 5}}}
`

const learnLog = `[2026-11-30 12:00:00.000][1][info][wasm] wasm log: weir: provider openai, models gpt-*: it says that its limit is 400 rpm
[2026-11-30 12:00:00.001][1][info][wasm] wasm log: weir: provider openai, models gpt-*: it says that its limit is 20000 tpm
[2026-11-30 12:00:01.000][1][info][wasm] wasm log: weir: provider openai, models gpt-*: it says that its limit is 500 rpm
[2026-11-30 12:00:01.000][1][info][wasm] wasm log: weir: provider openai, models *: it says that its limit is 60 rpm
[2026-11-30 12:00:01.000][1][info][wasm] wasm log: weir: provider claude, models *: it says that its limit is 40000 itpm
[2026-11-30 12:00:01.000][1][info][wasm] wasm log: weir: provider gone, models *: it says that its limit is 1 rpm
[2026-11-30 12:00:01.000][1][info][wasm] wasm log: weir: provider openai, models gpt-*: rate 70% of the limit
`

// What providers tell is shown, and written when told to: the last word on each limit, and nothing else changes.
func TestLearn(t *testing.T) {
	file := write(t, "policy.yaml", learnPolicy)
	code, out, errs := weir(t, learnLog, "learn", "--policy", file, "--log", "-")
	for _, want := range []string{
		"    6 -      gpt-*: {rpm: 100, tpm: 30_000} # as of May\n    6 +      gpt-*: {rpm: 500, tpm: 20_000} # as of May\n",
		`    9 +  claude: {upstream: 'https://claude.test', dialect: anthropic, models: {"*": {itpm: 40_000, rpm: 5}}}`,
	} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%d: no %q in\n%s%s", code, want, out, errs)
		}
	}
	if data, _ := os.ReadFile(file); string(data) != learnPolicy {
		t.Error("it was written without a word")
	}
	if code, _, errs := weir(t, learnLog, "learn", "--policy", file, "--log", "-", "--write"); code != exitUsage || !strings.Contains(errs, "--yes") {
		t.Error(code, errs)
	}
	if code, out, errs := weir(t, learnLog, "learn", "--policy", file, "--log", "-", "--write", "--yes", "--only", "lower", "--json"); code != 0 ||
		!strings.Contains(out, `"told": 20000`) || strings.Contains(out, "500") || !strings.Contains(errs, "Wrote "+file) {
		t.Error(code, out, errs)
	}
	if data, _ := os.ReadFile(file); string(data) != strings.Replace(learnPolicy, "tpm: 30_000", "tpm: 20_000", 1) {
		t.Errorf("wrote\n%s", data)
	}
	if code, _, errs := weir(t, learnLog, "learn", "--policy", file, "--log", "-", "--write", "--yes"); code != 0 {
		t.Error(errs)
	}
	if code, out, _ := weir(t, learnLog, "learn", "--policy", file, "--log", "-", "--write"); code != 0 || !strings.Contains(out, "No provider tells") {
		t.Error(code, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

// A control plane is asked where there is no log; one that has heard of nothing has nothing to say.
func TestLearnFromControlPlane(t *testing.T) {
	addr, tokens := serveFor(t, adminPolicy)
	code, out, errs := weir(t, "", "learn", "--policy", write(t, "p.yaml", learnPolicy), "--control", addr, "--token-file", tokens)
	if code != 0 || !strings.Contains(out, "No provider tells") {
		t.Error(code, out, errs)
	}
	r, err := policyfile.Parse("p", []byte(learnPolicy))
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	eachPool(r, func(provider, models string) { names += "provider " + provider + "/" + models + "\n" })
	for _, e := range r.Policy.Entries() { // as the status calls them
		if q := (fleet.Quota{Quota: e.Tier.String() + " " + e.Name}); e.Tier.String() == "provider" && !strings.Contains(names, q.Quota+"\n") {
			t.Errorf("%s is not among\n%s", q.Quota, names)
		}
	}
}

func TestDiffOfInsertedLines(t *testing.T) {
	was := []policyfile.File{{Name: "p", Data: []byte("a\nb\nc\n")}}
	for is, want := range map[string]string{"a\nx\nb\nc\n": "p\n    2 +x\n", "a\nB\nc\n": "p\n    2 -b\n    2 +B\n", "a\nb\nc\n": "", "A\nb\nx\nc\n": "p\n    1 -a\n    1 +A\n    3 +x\n", "a\nc\n": "p\n    2 -b\n", "a\nx\ny\nb\nc\n": "p\n    2 +x\n    3 +y\n"} {
		if got := diffOf(was, []policyfile.File{{Name: "p", Data: []byte(is)}}, false); got != want {
			t.Errorf("%q: %q, want %q", is, got, want)
		}
	}
}
