// SPDX-License-Identifier: Apache-2.0

// Report prints how far estimates are from what real tokenizers count, by family and by kind of text: `make tokens-report`.
//
//	report [-speed] TEXTS    -speed: how long counting takes, instead; also built for wasip1
package main

import (
	"fmt"
	"log"
	"os"
	"slices"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/weirproxy/weir/internal/held"
	"github.com/weirproxy/weir/policy/tokens"
)

var families = []tokens.Family{
	tokens.O200k, tokens.Cl100k, tokens.Claude, tokens.Claude47, tokens.Claude2, tokens.Gemini, tokens.Llama, tokens.Qwen, tokens.DeepSeek,
	tokens.Mistral,
}

// An estimator is ours, or one that others use.
type estimator struct {
	name  string
	count func(f tokens.Family, text string) float64
}

func main() {
	log.SetFlags(0)
	fast := len(os.Args) > 2 && os.Args[1] == "-speed"
	texts, err := held.Read(os.Args[len(os.Args)-1])
	if err != nil {
		log.Fatal(err)
	}
	if fast {
		speed(texts)
		return
	}
	var set tokens.Set
	estimators := []estimator{
		{"weir", func(f tokens.Family, s string) float64 { return float64(set.Count(f, s)) }},
		{"chars/4", func(_ tokens.Family, s string) float64 { return float64(utf8.RuneCountInString(s)) / 4 }},
		{"len/4 + 5", func(_ tokens.Family, s string) float64 { return float64(len(s))/4 + 5 }},
		{"flat 5000", func(tokens.Family, string) float64 { return 5000 }},
	}
	fmt.Printf("%d texts. Errors in percent of what the family's own tokenizer counts: mean bias / median |error| / 95th percentile |error|.\n\n", len(texts))
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, kind := range []string{"", "english"} {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t\n", title(kind),
			estimators[0].name, estimators[1].name, estimators[2].name, estimators[3].name)
		for _, f := range families {
			row(out, texts, kind, f, f.String(), estimators)
		}
		fmt.Fprintln(out, "\t\t\t\t\t")
	}
	for _, f := range families {
		fmt.Fprintf(out, "%v by kind\t%s\t%s\t%s\t%s\t\n", f, estimators[0].name, estimators[1].name, estimators[2].name, estimators[3].name)
		for _, kind := range kinds(texts) {
			row(out, texts, kind, f, kind, estimators)
		}
		fmt.Fprintln(out, "\t\t\t\t\t")
	}
	out.Flush()
}

func row(out *tabwriter.Writer, texts []held.Text, kind string, f tokens.Family, name string, estimators []estimator) {
	fmt.Fprint(out, name)
	for _, e := range estimators {
		fmt.Fprintf(out, "\t%v", held.Measure(texts, kind, f.String(), func(s string) float64 { return e.count(f, s) }))
	}
	fmt.Fprintln(out, "\t")
}

func title(kind string) string {
	switch kind {
	case "":
		return "all kinds"
	case "english":
		return "English, code, data"
	}
	return kind
}

func kinds(texts []held.Text) (kinds []string) {
	for _, t := range texts {
		if !slices.Contains(kinds, t.Kind) {
			kinds = append(kinds, t.Kind)
		}
	}
	return kinds
}
