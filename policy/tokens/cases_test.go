// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"bufio"
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// testCase is a line that gen/cases.py writes: what tiktoken counts.
type testCase struct {
	Text   []byte `json:"b"`
	O200k  int    `json:"o"`
	Cl100k int    `json:"c"`
	// Where the published patterns cut the text; not in all cases.
	O200kEnds  []int `json:"oe"`
	Cl100kEnds []int `json:"ce"`
}

// TestCases reads testdata/cases.jsonl, or the file that TOKENS_CASES names.
func TestCases(t *testing.T) {
	f, err := os.Open(cmp.Or(os.Getenv("TOKENS_CASES"), "testdata/cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o200k, cl100k := New(O200k), New(Cl100k)
	lines, n := bufio.NewScanner(f), 0
	lines.Buffer(nil, 1<<26)
	for ; lines.Scan(); n++ {
		var c testCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
		checkCase(t, o200k, c.Text, c.O200k, c.O200kEnds)
		checkCase(t, cl100k, c.Text, c.Cl100k, c.Cl100kEnds)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Fatal("no cases")
	}
	t.Logf("%d cases", n)
}

func checkCase(t *testing.T, c *Counter, text []byte, want int, wantEnds []int) {
	t.Helper()
	if n := c.CountBytes(text); n != want {
		t.Errorf("%v counts %d tokens in %.200q, not %d", c.family, n, text, want)
	}
	if wantEnds == nil {
		return
	}
	if ends := endsOf(c.enc, string(text)); !slices.Equal(ends, wantEnds) {
		t.Errorf("%v cuts %q at %d, not %d", c.family, text, ends, wantEnds)
	}
}

// endsOf gives the ends of the pieces of s, cut without the short way of count.
func endsOf(e encoding, s string) (ends []int) {
	for i := 0; i < len(s); {
		switch e {
		case encO200k:
			i = cutO200k(s, i)
		case encCl100k:
			i = cutCl100k(s, i)
		default:
			i = e.cutExtra(s, i)
		}
		ends = append(ends, i)
	}
	return ends
}
