// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"net/url"
	"strings"
	"testing"
)

// Whatever else is in the header, one well-formed member is found, and a second value of it makes it none.
func FuzzBaggage(f *testing.F) {
	f.Add("a=b;c=d", "v w")
	f.Add(",;=%zz", "")
	f.Fuzz(func(t *testing.T, rest, value string) {
		member := "weir.tree=" + url.PathEscape(value)
		got := baggage([][2]string{{"baggage", rest}, {"baggage", member}}, "weir.tree")
		if !strings.Contains(rest, "weir.tree") && got != strings.TrimSpace(value) && got != value {
			t.Fatalf("%q: %q, want %q", rest, got, value)
		}
		if value != "" && baggage([][2]string{{"baggage", member + "," + member + "x"}}, "weir.tree") != "" {
			t.Fatal("two values")
		}
	})
}
