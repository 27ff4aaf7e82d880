// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

// Envoy has to hold more of a body than is read only where what stands behind that decides.
func TestMostHeld(t *testing.T) {
	const parse, hold = 1 << 20, 16 << 20
	const user = `"trust":["all"],"limits":{"user":{"default":{"rpm":"5"}}}`
	for more, want := range map[string]int64{
		`{}`:                                     parse,
		`{"*":{"rpm":"5"}}`:                      parse,
		`{"*":{"rpm":"5"},"gpt-4o":{"rpm":"1"}}`: hold,
		`{"gpt-*":{"rpm":"1"}}`:                  hold,
		`{}}},"prices":{"gpt-4o":{"input":1,"output":1}`:                                                   hold,
		`{}}},"prices":{"*":{"input":1,"output":1}`:                                                        parse,
		`{}}},"weights":{"o3":{"reasoning":"50%"}`:                                                         hold,
		`{}}},` + user + `,"who":{"user":["header x-user"]`:                                                parse,
		`{}}},` + user + `,"who":{"user":["header x-user","body user"]`:                                    hold,
		`{}}},"trust":["all"],"who":{"user":["body user"]`:                                                 parse,
		`{}}},"trust":["all"],"limits":{"tenant":{"default":{"rpm":"5"}}},"who":{"user":["body user"]`:     parse,
		`{}}},` + user + `,"who":{"user":["body u"]},"body":{"parse":"32MiB"`:                              32 << 20,
		`{}}},` + user + `,"who":{"user":["body u"]},"body":{"hold":"2MiB"`:                                2 << 20,
		`{}}},"trust":["all"],"who":{"class":["body u"]},"classes":{"a":{"priority":1},"b":{"priority":2}`: hold,
		`{}}},"body":{"parse":"2MiB","hold":"4MiB"`:                                                        2 << 20,
	} {
		s := `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://api.openai.com","models":` + more + "}}"
		if !strings.Contains(more, "}},") {
			s += "}"
		}
		spec, err := Decode([]byte(s))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		p, err := Compile(spec)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if got := p.MostHeld(); got != want {
			t.Errorf("%s: %d bytes, want %d", s, got, want)
		}
	}
}
