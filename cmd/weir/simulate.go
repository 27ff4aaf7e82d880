// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirproxy/weir/policy/sim"
)

type simulateCmd struct {
	What   string     `arg:"" optional:"" help:"An experiment, a scenario that comes with weir, or a file with a scenario; - is standard input. Without it: a list." placeholder:"NAME|FILE"`
	Seed   uint64     `help:"Seed of what is random: the same one gives the same bytes." default:"1"`
	JSON   bool       `name:"json" help:"Print JSON."`
	SVG    string     `name:"svg" help:"Write the charts to a file." placeholder:"FILE"`
	Quick  bool       `help:"Fewer repetitions, where an experiment has many."`
	Jitter sim.Jitter `help:"Of clients that retry: additive, equal or full." default:"additive"`
	Print  bool       `help:"Print the text of a scenario that comes with weir, to read or to begin your own with."`
}

// Help is shown by weir simulate --help.
func (simulateCmd) Help() string {
	return "Exit code 1: a check of the experiment, or an expectation of the scenario, does not hold.\n\n" +
		"Examples:\n\n  weir simulate\n  weir simulate agent-burst --seed 7 --json\n  weir simulate burst --print > mine.scenario\n  weir simulate mine.scenario --svg mine.svg"
}

func (c *simulateCmd) Run(s streams) error {
	if c.What == "" {
		return listSimulations(s.out)
	}
	run, err := c.find(s)
	if err != nil || run == nil {
		return err
	}
	o := sim.Options{Seed: c.Seed, Quick: c.Quick, Jitter: c.Jitter}
	done := func() {}
	if isTerminal(s.err) {
		o.Progress, done = showProgress(s.err, c.What)
	}
	r, err := run(o)
	done()
	if err != nil {
		return err
	}
	return c.show(s, r)
}

// find gives what to run; nil if there is nothing to, for it was only printed.
func (c *simulateCmd) find(s streams) (func(sim.Options) (*sim.Report, error), error) {
	for _, e := range sim.Experiments() {
		if e.Name == c.What && !c.Print {
			return e.Run, nil
		}
	}
	text, ok := sim.ScenarioText(c.What)
	switch {
	case ok && c.Print:
		_, err := s.out.Write(text)
		return nil, err
	case c.Print:
		return nil, usagef("--print %s: there is no scenario of that name; there are %s", c.What, strings.Join(sim.ScenarioNames(), ", "))
	case !ok:
		var err error
		if text, err = c.readScenario(s); err != nil {
			return nil, err
		}
	}
	scenario, err := sim.ParseScenario(c.What, text)
	if err != nil {
		return nil, usagef("the scenario has errors:\n  %s", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	return scenario.Run, nil
}

// maxScenario is how long a scenario may be, in bytes.
const maxScenario = 1 << 20

func (c *simulateCmd) readScenario(s streams) ([]byte, error) {
	in, done, err := open(c.What, s)
	if errors.Is(err, fs.ErrNotExist) {
		hint := ""
		if meant, ok := nearest(c.What, simulationNames()); ok {
			hint = "did you mean " + meant + "? "
		}
		return nil, usagef("no experiment, scenario or file is called %q (%sweir simulate lists what there is)", c.What, hint)
	}
	if err != nil {
		return nil, err
	}
	defer done()
	text, err := io.ReadAll(io.LimitReader(in, maxScenario+1))
	if err != nil {
		return nil, usagef("cannot read %s: %w", c.What, err)
	}
	if len(text) > maxScenario {
		return nil, usagef("%s is longer than 1 MiB", c.What)
	}
	return text, nil
}

func simulationNames() []string {
	var names []string
	for _, e := range sim.Experiments() {
		names = append(names, e.Name)
	}
	return append(names, sim.ScenarioNames()...)
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

func listSimulations(out io.Writer) error {
	lines := [][]string{}
	for _, e := range sim.Experiments() {
		lines = append(lines, []string{"  " + e.Name, e.About})
	}
	fmt.Fprint(out, "Experiments, each with checks of its own:\n\n", columns(lines, 2))
	lines = nil
	for _, name := range sim.ScenarioNames() {
		text, _ := sim.ScenarioText(name)
		s, err := sim.ParseScenario(name, text)
		if err != nil {
			return err
		}
		lines = append(lines, []string{"  " + name, s.Title})
	}
	fmt.Fprint(out, "\nScenarios that say what weir decides, and why (weir simulate NAME --print shows the text):\n\n", columns(lines, 2))
	return nil
}

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
