// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"testing"
)

func compileDegrade(t *testing.T, more string) (*Policy, error) {
	t.Helper()
	s, err := Decode([]byte(`{"apiVersion":"weir/v1","providers":{"openai":{"cluster":"o"},"azure":{"cluster":"a","dialect":"openai"}},` + more + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return Compile(s)
}

// The entry of a model comes before patterns; a provider never spills to itself.
func TestSubstitutes(t *testing.T) {
	p, err := compileDegrade(t, `"degrade":{"gpt-*":{"model":"small","max_tokens":"9"},"gpt-4o":{"max_tokens":"5"}},"spill":{"*":{"provider":"azure"}}`)
	if err != nil {
		t.Fatal(err)
	}
	if d := p.DegradeOf("gpt-4o"); d == nil || d.Model != "" || d.MaxTokens != 5 {
		t.Errorf("%+v", d)
	}
	if d := p.DegradeOf("gpt-5"); d == nil || d.Model != "small" || d.MaxTokens != 9 {
		t.Errorf("%+v", d)
	}
	if d := p.DegradeOf("other"); d != nil {
		t.Errorf("%+v", d)
	}
	openai, _ := p.ProviderOf("/openai/x")
	azure, _ := p.ProviderOf("/azure/x")
	if s := p.SpillOf(openai, "any"); s == nil || s.Provider != azure {
		t.Errorf("%+v", s)
	}
	if s := p.SpillOf(azure, "any"); s != nil {
		t.Errorf("%+v", s)
	}
}

// What cannot be is refused, also where it does not come from a file.
func TestBadSubstitutes(t *testing.T) {
	big := strings.Repeat("x", MaxStatic)
	many := ""
	for i := range 9 {
		many += fmt.Sprintf(`"m%d":{"static":{"api":"chat","reply":%q}},`, i, big)
	}
	for more, want := range map[string]string{
		`"degrade":{"a":null}`: "nothing else", `"spill":{"a":null}`: "no provider", `"degrade":{"":{"model":"x"}}`: "a name has",
		`"degrade":{"a":{"static":{"api":"chat"}}}`:                          "no reply",
		`"degrade":{"a":{"static":{"api":"soap","reply":"x"}}}`:              "no reply",
		`"degrade":{"a":{"static":{"api":"chat","reply":"` + big + `x"}}}`:   "longer than",
		`"degrade":{` + strings.TrimSuffix(many, ",") + `}`:                  "at most 524288",
		`"degrade":{"a":{"model":"x\ny"}}`:                                   "control characters",
		`"degrade":{"a":{"model":"` + strings.Repeat("x", MaxName+1) + `"}}`: "128 bytes",
	} {
		more = strings.ReplaceAll(more, "x\ny", `x\ny`)
		if _, err := compileDegrade(t, more); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", more, err, want)
		}
	}
}
