// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimestamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 8e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		if got, want := timestamp(at), at.Format(time.RFC3339); got != want {
			t.Fatal(got, want)
		}
	})
}
