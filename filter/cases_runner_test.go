// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const runnerRequest = `"method":"POST","path":"/v1/chat/completions","headers":{"content-type":"application/json"},` +
	`"body":{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`

// A runner of cases that lets things pass is worse than none: what is not known in a case fails, and so does each kind of
// expectation that is not met.
func TestCaseRunner(t *testing.T) {
	usage := `,"response":{"status":200,"headers":{"content-type":"application/json"},"body_chunks":["{\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":3}}"]}`
	one := func(tier, more, expected string) string {
		return `{"id":"x","input":{"tier":` + tier + `,` + runnerRequest + more + `},"expected":{` + expected + `}}`
	}
	steps := func(tier, steps, expected string) string {
		return `{"id":"x","input":{"tier":` + tier + `,"sequence":[` + steps + `]},"expected":{` + expected + `}}`
	}
	a := `{"t":0,"op":"request","id":"A",` + runnerRequest + `}`
	for name, row := range map[string]struct{ line, want string }{
		"good":                {one(`{"tpm":1000}`, usage, `"decision":"admit","charge":11,"usage":{"total":11},"estimate_output":50`), ""},
		"a good sequence":     {steps(`{"concurrency":1}`, a+`,{"t":1,"op":"client_reset","id":"A"}`, `"inflight_at_end":0,"decisions":{"A":"admit"}`), ""},
		"unknown operation":   {steps(`{"rpm":1}`, `{"t":0,"op":"dance","id":"A"}`, `"no_trap":true`), "not understood"},
		"unknown in a step":   {steps(`{"rpm":1}`, `{"t":0,"op":"request","tempo":1}`, `"no_trap":true`), "not understood"},
		"unknown id":          {steps(`{"rpm":1}`, a+`,{"t":1,"op":"client_reset","id":"B"}`, `"no_trap":true`), "not understood"},
		"unknown expected":    {one(`{"rpm":1}`, "", `"happy":true`), "not understood"},
		"unknown decision":    {one(`{"rpm":1}`, "", `"decision":"ponder"`), "not understood"},
		"unknown tier":        {one(`{"furlongs":1}`, "", `"decision":"admit"`), "not the notation"},
		"unknown input":       {one(`{"rpm":1}`, `,"weather":"fair"`, `"decision":"admit"`), "not the notation"},
		"wrong decision":      {one(`{"tpm":10}`, "", `"decision":"admit"`), "reject request_too_large"},
		"wrong reason":        {one(`{"tpm":10}`, "", `"decision":"reject queue_full"`), "want reject queue_full"},
		"wrong charge":        {one(`{"tpm":1000}`, usage, `"charge":{"min":12}`), "charge is 11"},
		"wrong usage":         {one(`{"tpm":1000}`, usage, `"usage":{"input":9}`), "usage: input"},
		"wrong estimate":      {one(`{"tpm":1000}`, "", `"estimate_input":{"max":7}`), "estimated input"},
		"wrong header":        {one(`{"rpm":0}`, "", `"headers":{"x-should-retry":"maybe"}`), "x-should-retry"},
		"wrong class":         {one(`{"rpm":9}`, usage, `"class":"terminal"`), "class ok"},
		"still in flight":     {steps(`{"concurrency":1}`, a, `"inflight_at_end":0`), "in flight is 2"},
		"nothing was refused": {one(`{"rpm":9}`, "", `"no_echo":true`), "nothing was refused"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runLine(t, row.line)
			if row.want == "" && got != "" || !strings.Contains(got, row.want) {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

// runLine runs one case and gives all complaints.
func runLine(t *testing.T, line string) string {
	t.Helper()
	c := new(fieldCase)
	if err := strict([]byte(line), c); err != nil {
		return "not the notation: " + err.Error()
	}
	problems, unknown := c.run(nil)
	return strings.Join(append(problems, prefixed("not understood: ", unknown)...), "; ")
}

// A file of cases is read whole, however long its lines are.
func TestLoadCases(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cases.jsonl")
	long := `{"id":"long","note":"` + strings.Repeat("x", 1<<20) + `"}`
	if err := os.WriteFile(file, []byte(long+"\n\n"+`{"id":"short"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if cases := loadCases(t, file); len(cases) != 2 || cases[1].ID != "short" {
		t.Errorf("%d cases", len(cases))
	}
}
