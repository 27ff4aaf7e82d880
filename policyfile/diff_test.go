// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"slices"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	const base = "apiVersion: weir/v1\nproviders: {openai: {upstream: 'https://x.test', models: {'*': {tpm: 5}}}}\n"
	parse := func(more string) *Result {
		t.Helper()
		r, err := Parse("policy.yaml", []byte(base+more))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	was := parse("secret: sixteen bytes or more, this is\nlimits: {tenant: {a: {rpm: 5}, b.c: {tpm: 7}}}\ntrust: [all]\n")
	is := parse("secret: another one, as long as it was\nlimits: {tenant: {a: {rpm: 50, tpm: 9}}}\ntrust: [10.0.0.0/8, 127.0.0.1]\n")
	var got []string
	for _, c := range Diff(was, is) {
		got = append(got, c.String())
	}
	want := []string{
		"limits.tenant.\"b.c\".tpm: gone, it was 7", "limits.tenant.a.rpm: 5 -> 50", "limits.tenant.a.tpm: new, 9",
		"secret: (secret) -> (secret)", "trust[0]: all -> 10.0.0.0/8", "trust[1]: new, 127.0.0.1",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if d := Diff(was, was); len(d) > 0 {
		t.Errorf("the same: %v", d)
	}
}
