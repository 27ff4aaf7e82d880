// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/weirproxy/weir/internal/held"
	"github.com/weirproxy/weir/policy/tokens"
)

// speed prints how long counting takes, in ns a byte: the best of some rounds, each of which begins with an empty cache and sees
// each text once.
func speed(texts []held.Text) {
	families := []tokens.Family{tokens.O200k, tokens.Cl100k, tokens.Claude}
	for _, f := range families {
		best(texts, f) // the engine compiles anew what is used much
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "ns a byte\tbytes\t%v\t%v\t%v\t\n", families[0], families[1], families[2])
	for _, kind := range append([]string{"", "english"}, kinds(texts)...) {
		of := held.Only(texts, kind)
		bytes := 0
		for _, t := range of {
			bytes += len(t.Text)
		}
		fmt.Fprintf(out, "%s\t%d", title(kind), bytes)
		for _, f := range families {
			fmt.Fprintf(out, "\t%.1f", float64(best(of, f).Nanoseconds())/float64(bytes))
		}
		fmt.Fprintln(out, "\t")
	}
	out.Flush()
}

// rounds is so many that some are not disturbed by what else the machine does.
const rounds = 40

func best(texts []held.Text, f tokens.Family) (best time.Duration) {
	best = time.Hour
	for range rounds {
		c := tokens.New(f)
		c.Count("warm the code, not the cache")
		begin := time.Now()
		for _, t := range texts {
			c.Count(t.Text)
		}
		best = min(best, time.Since(begin))
	}
	return best
}
