// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestCases runs the cases from the field, testdata/cases.jsonl or the file that WEIR_CASES names, through the filter. Cases in
// testdata/later.txt wait for something that is not there yet, those in testdata/disputed.txt expect what we do not: both must
// fail, so that the lists stay honest. What is not understood of a case is a failure everywhere.
func TestCases(t *testing.T) {
	cases := loadCases(t, cmp.Or(os.Getenv("WEIR_CASES"), "testdata/cases.jsonl"))
	excused := map[string]string{}
	for _, list := range []string{"later.txt", "disputed.txt"} {
		for id, why := range caseList(t, "testdata/"+list) {
			if excused[id] != "" {
				t.Errorf("%s is listed twice", id)
			}
			excused[id] = list + ": " + why
		}
	}
	wasm, err := module()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range cases {
		if seen[c.ID] {
			t.Errorf("two cases %s", c.ID)
		}
		seen[c.ID] = true
		t.Run(c.ID, func(t *testing.T) {
			problems, unknown := c.run(nil)
			if c.cheap() || c.Expected["max_vm_mb"] != nil {
				p, u := c.run(wasm)
				problems, unknown = append(problems, prefixed("wasm: ", p)...), append(unknown, u...)
			}
			c.report(t, problems, unknown, excused[c.ID])
		})
	}
	for id := range excused {
		if os.Getenv("WEIR_CASES") == "" && !seen[id] {
			t.Errorf("no case %s, which is listed as excused", id)
		}
	}
}

func (c *fieldCase) report(t *testing.T, problems, unknown []string, excuse string) {
	for _, p := range unknown {
		t.Errorf("not understood: %s", p)
	}
	switch {
	case excuse != "" && len(problems) == 0 && len(unknown) == 0:
		t.Errorf("it passes: take it out of %s", excuse)
	case excuse != "":
		t.Logf("%s: %s", excuse, strings.Join(problems, "; "))
	default:
		for _, p := range problems {
			t.Error(p)
		}
	}
	if t.Failed() {
		var text string
		_ = json.Unmarshal(c.Expected["text"], &text)
		t.Log(text)
	}
}

func prefixed(prefix string, list []string) (out []string) {
	for _, s := range list {
		out = append(out, prefix+s)
	}
	return out
}

// caseList reads a list of ids, each with a reason.
func caseList(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		id, why, _ := strings.Cut(line, " ")
		if strings.TrimSpace(why) == "" || list[id] != "" {
			t.Errorf("%s: %s without a reason, or twice", file, id)
		}
		list[id] = strings.TrimSpace(why)
	}
	return list
}
