// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchTokensBody: the texts of a file are cut between characters, to about the size that is asked for.
func TestBenchTokensBody(t *testing.T) {
	c := &benchTokensCmd{Texts: filepath.Join(t.TempDir(), "texts.jsonl"), Model: "gpt-4o"}
	if err := os.WriteFile(c.Texts, []byte(`{"text":"çà et là \"中文\"\n"}`+"\n"+`{"kind":"no text"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	texts, err := c.read(t.Context())
	if err != nil || len(texts) != 1 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	for range 100 {
		var q struct {
			Model    string
			Messages []struct{ Content string }
		}
		if err := json.Unmarshal([]byte(c.body(texts, 2000)), &q); err != nil {
			t.Fatal(err)
		}
		text := q.Messages[0].Content
		if q.Model != c.Model || len(text) < 2000 || len(text) > 2004 || strings.ContainsRune(text, '\uFFFD') {
			t.Fatalf("%s: %d bytes: %q", q.Model, len(text), text)
		}
	}
}
