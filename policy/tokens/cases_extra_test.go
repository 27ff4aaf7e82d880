// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"bufio"
	"cmp"
	"encoding/json"
	"os"
	"testing"

	"github.com/weirproxy/weir/internal/held"
)

// extraCase is a line that gen/cases.py writes for one of the extra vocabularies.
type extraCase struct {
	Text   []byte `json:"b"`
	Tokens int    `json:"n"`
	Ends   []int  `json:"e"`
}

// eachExtra runs a test for each extra vocabulary that is linked.
func eachExtra(t *testing.T, test func(t *testing.T, f Family)) {
	linked := 0
	for e := encCl100k + 1; e < numEncodings; e++ {
		if e.linked() {
			linked++
			t.Run(exactFamilies[e].String(), func(t *testing.T) { test(t, exactFamilies[e]) })
		}
	}
	if linked == 0 {
		t.Skip("none is linked: go test -tags weir_qwen,weir_deepseek,weir_mistral")
	}
}

// TestExtraCases reads testdata/FAMILY.jsonl, or FAMILY.jsonl in the folder that TOKENS_EXTRA_CASES names.
func TestExtraCases(t *testing.T) {
	eachExtra(t, func(t *testing.T, f Family) {
		file, err := os.Open(cmp.Or(os.Getenv("TOKENS_EXTRA_CASES"), "testdata") + "/" + f.String() + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		counter, lines, n := New(f), bufio.NewScanner(file), 0
		lines.Buffer(nil, 1<<26)
		for ; lines.Scan(); n++ {
			var c extraCase
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Fatalf("line %d: %v", n+1, err)
			}
			checkCase(t, counter, c.Text, c.Tokens, c.Ends)
		}
		if err := lines.Err(); err != nil || n == 0 {
			t.Fatal(n, err)
		}
		t.Logf("%d cases", n)
	})
}

// TestExtraTexts: whole texts count as their own tokenizers counted them.
func TestExtraTexts(t *testing.T) {
	eachExtra(t, func(t *testing.T, f Family) {
		texts, err := held.Read("testdata/texts.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		c := New(f)
		for k, x := range texts {
			if got, want := c.Count(x.Text), x.N[held.Truth[f.String()]]; got != want {
				t.Errorf("text %d, %s: %d tokens, not %d", k, x.Kind, got, want)
			}
		}
	})
}
