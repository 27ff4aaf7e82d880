// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// TestTally: what each class of pieces adds, in the middle of a text and at its end, where there are no eight bytes to load.
func TestTally(t *testing.T) {
	c := New(O200k)
	for text, want := range map[string]tally{
		" the":     {featSpaceWord: 1, featWholeBytes: 4},
		" The":     {featSpaceCapital: 1, featWholeBytes: 4},
		"the":      {featWord: 1, featWholeBytes: 3},
		"The":      {featCapital: 1, featWholeBytes: 3},
		".the":     {featSignWord: 1, featWholeBytes: 4, featRare: 3},
		" werken":  {featSpaceWord: 1, featWholeBytes: 7, featRare: 3, featNew: 1},
		" HTTP":    {featCaps: 1, featCapBytes: 5},
		" qxzvj":   {featParts: 3, featPartBytes: 6},
		" Qxzvj":   {featCapitalParts: 3, featPartBytes: 6},
		"123":      {featNumber: 1, featDigit: 3},
		"{":        {featSign: 1},
		");\n":     {featSigns: 1, featSignBytes: 3, featSignLines: 1},
		" {":       {featSigns: 1, featSignBytes: 2},
		"\n\n":     {featLines: 1},
		" \n":      {featLines: 1},
		" ":        {featBlank: 1},
		"\t":       {featBlank: 1},
		"中文":       {featWide: 1, featScripts + 2*feature(scriptHan): 1, featScripts + 2*feature(scriptHan) + 1: 2},
		" présage": {featWide: 1, featScripts + 2*feature(scriptLatin): 2, featScripts + 2*feature(scriptLatin) + 1: 1},
	} {
		end, middle, after := tally{}, tally{}, tally{}
		c.begin()
		c.tallyUp(text, &end)
		const behind = "7 seven eight"
		c.tallyUp(text+behind, &middle)
		c.tallyUp(behind, &after)
		for k := range middle {
			middle[k] -= after[k]
		}
		if end != want || middle != want {
			t.Errorf("%q is %v at the end, %v in the middle, want %v", text, end, middle, want)
		}
	}
}

// TestTallies writes the tallies of the texts in TOKENS_TEXTS to TOKENS_TALLIES, for gen/fit.py.
func TestTallies(t *testing.T) {
	if os.Getenv("TOKENS_TEXTS") == "" {
		t.Skip("only by hand, see gen/README.md")
	}
	f, err := os.Open(os.Getenv("TOKENS_TEXTS"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out, err := os.Create(os.Getenv("TOKENS_TALLIES"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c, w := New(O200k), json.NewEncoder(out)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var x struct {
			Kind   string         `json:"kind"`
			Source string         `json:"source"`
			Text   string         `json:"text,omitempty"`
			N      map[string]int `json:"n"`
			X      tally          `json:"x"`
		}
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		c.begin()
		c.tallyUp(x.Text, &x.X)
		x.X.relate()
		x.Text = ""
		if err := w.Encode(&x); err != nil {
			t.Fatal(err)
		}
	}
}
