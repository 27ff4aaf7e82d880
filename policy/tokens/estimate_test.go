// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"testing"

	"github.com/weirproxy/weir/internal/held"
)

// TestEstimates holds the errors of the estimates over texts that the factors have never seen to what is promised for
// families without a table: over all kinds, and over English, code and data. `make tokens-report` has all.
func TestEstimates(t *testing.T) {
	texts, err := held.Read("testdata/texts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var s Set
	for f := O200k; f < Other; f++ {
		for kind, most := range map[string]held.Errors{"": {Bias: 2, Median: 4, P95: 17}, "english": {Bias: 2, Median: 3, P95: 12}} {
			if f.Exact() {
				most = held.Errors{}
			}
			e := held.Measure(texts, kind, f.String(), func(text string) float64 { return float64(s.Count(f, text)) })
			if max(e.Bias, -e.Bias) > most.Bias || e.Median > most.Median || e.P95 > most.P95 {
				t.Errorf("%v %s: %v, not within %v", f, kind, e, most)
			}
		}
	}
}
