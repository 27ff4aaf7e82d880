// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

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
