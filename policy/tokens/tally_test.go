// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

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
			Kind string         `json:"kind"`
			Text string         `json:"text,omitempty"`
			N    map[string]int `json:"n"`
			X    tally          `json:"x"`
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
