// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirproxy/weir/policy/sim"
)

// show prints a report, and says whether all of it holds.
func (c *simulateCmd) show(s streams, r *sim.Report) error {
	if c.SVG != "" {
		if err := os.WriteFile(c.SVG, svgOf(r.Charts), 0o644); err != nil {
			return usageError{err}
		}
	}
	if c.JSON {
		if err := json.NewEncoder(s.out).Encode(r); err != nil {
			return err
		}
		return failure(r)
	}
	fmt.Fprint(s.out, columns(append([][]string{r.Table.Header}, r.Table.Lines...), 2))
	if isTerminal(s.out) {
		for _, chart := range r.Charts {
			fmt.Fprint(s.out, "\n", sparks(chart))
		}
	}
	fmt.Fprintln(s.out)
	for _, n := range r.Notes {
		fmt.Fprintln(s.out, n)
	}
	for _, k := range r.Checks {
		if !k.OK {
			fmt.Fprintf(s.out, "does not hold: %s\n  want   %s\n  found  %s\n", k.What, k.Want, k.Found)
		}
	}
	if err := failure(r); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "Seed %d; all %d checks hold.\n", r.Seed, len(r.Checks))
	return nil
}

func failure(r *sim.Report) error {
	bad := slices.DeleteFunc(slices.Clone(r.Checks), func(c sim.Check) bool { return c.OK })
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d checks do not hold: %s", len(bad), len(r.Checks), bad[0].What)
}

// columns lays out lines: the first columns to the left, the others to the right, no blanks at the end.
func columns(lines [][]string, left int) string {
	var width []int
	for _, l := range lines {
		for i, cell := range l {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, l := range lines {
		var line strings.Builder
		for i, cell := range l {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i < left {
				line.WriteString(cell + pad + "  ")
			} else {
				line.WriteString(pad + cell + "  ")
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// showProgress gives a function that says how far a run is, once it has taken a moment, and one that wipes it away.
func showProgress(w io.Writer, what string) (progress func(done, all int), clear func()) {
	last, shown := time.Now().Add(300*time.Millisecond), false
	progress = func(done, all int) {
		if now := time.Now(); all > 0 && now.After(last) {
			last, shown = now.Add(100*time.Millisecond), true
			fmt.Fprintf(w, "\r%s %d %% ", what, done*100/all)
		}
	}
	return progress, func() {
		if shown {
			fmt.Fprint(w, "\r\x1b[K")
		}
	}
}

// nearest gives the name that is most like a word, if one is.
func nearest(word string, names []string) (string, bool) {
	best, least := "", 3
	for _, n := range names {
		if d := distance(word, n); d < least {
			best, least = n, d
		}
	}
	return best, best != ""
}

// distance is how many letters have to be put in, taken out or changed (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := last
			if a[i] != b[j] {
				change++
			}
			last = row[j+1]
			row[j+1] = min(change, row[j]+1, last+1)
		}
	}
	return row[len(b)]
}
