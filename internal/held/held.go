// SPDX-License-Identifier: Apache-2.0

// Package held measures estimates against texts with the counts of real tokenizers, testdata/texts.jsonl: texts that
// nothing was fitted to. See gen/README.md.
package held

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// A Text has a kind (chat_en, code …) and what the tokenizers count.
type Text struct {
	Kind string         `json:"kind"`
	Text string         `json:"text"`
	N    map[string]int `json:"n"`
}

// Truth is the tokenizer that a family is measured against.
var Truth = map[string]string{
	"o200k": "o200k", "cl100k": "cl100k", "claude": "claude3", "claude-4.7": "claude4_8", "claude-2": "claude_legacy", "gemini": "gemma3",
	"llama": "llama3", "qwen": "qwen3", "deepseek": "deepseek", "mistral": "mistral_tekken",
}

// English says whether a kind is English, code or data.
func English(kind string) bool {
	return slices.Contains([]string{
		"chat_en", "prose_en", "code", "json", "yaml", "tool_schema", "logs", "stacktrace", "markdown_table", "latex_math", "csv",
	}, kind)
}

// Read reads the texts.
func Read(path string) (texts []Text, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	for {
		var t Text
		if err := d.Decode(&t); err == io.EOF {
			return texts, nil
		} else if err != nil {
			return nil, err
		}
		texts = append(texts, t)
	}
}

// Errors are the errors of an estimate, in percent of the truth, one value a text.
type Errors struct{ Bias, Median, P95 float64 }

func (e Errors) String() string { return fmt.Sprintf("%+.1f / %.1f / %.1f", e.Bias, e.Median, e.P95) }

// Measure gives the errors of an estimate for a family over the texts of a kind, see [Only].
func Measure(texts []Text, kind, family string, estimate func(text string) float64) (e Errors) {
	var all []float64
	for _, t := range Only(texts, kind) {
		truth := float64(t.N[Truth[family]])
		if truth == 0 {
			continue
		}
		err := (estimate(t.Text) - truth) / truth * 100
		e.Bias += err
		all = append(all, math.Abs(err))
	}
	if len(all) == 0 {
		return e
	}
	slices.Sort(all)
	e.Bias /= float64(len(all))
	e.Median, e.P95 = all[(len(all)-1)/2], all[(len(all)-1)*95/100]
	return e
}

// Only gives the texts of a kind: "" is all kinds, "english" English, code and data.
func Only(texts []Text, kind string) (of []Text) {
	for _, t := range texts {
		if kind == "" || kind == t.Kind || kind == "english" && English(t.Kind) {
			of = append(of, t)
		}
	}
	return of
}
