// SPDX-License-Identifier: Apache-2.0

package brief

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What brief writes is what fmt writes, whatever the arguments.
func TestSprintf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.Int64().Draw(t, "n")
		f := rapid.Float64Range(-1e20, 1e20).Draw(t, "f")
		if g, w := Sprintf("%q of %s, 100%% %v", s, []byte(s), time.Duration(n)), fmt.Sprintf("%q of %s, 100%% %v", s, []byte(s), time.Duration(n)); g != w {
			t.Fatalf("%q, want %q", g, w)
		}
		if g, w := Sprintf("%d and %d: %v%%", n, int(n), f), fmt.Sprintf("%d and %d: %v%%", n, int(n), f); g != w {
			t.Fatalf("%q, want %q", g, w)
		}
		if g, w := Errorf("%v: %q", errors.New(s), []byte(s)), fmt.Errorf("%v: %q", errors.New(s), []byte(s)); g.Error() != w.Error() {
			t.Fatalf("%q, want %q", g, w)
		}
	})
}

func TestSprintfOfWrongArguments(t *testing.T) {
	format := "%d, %v, %s, 5%"
	if got := Sprintf(format, struct{}{}, uint(1)); got != "%!(UNKNOWN), %!(UNKNOWN), %!(MISSING), 5%" {
		t.Error(got)
	}
}
