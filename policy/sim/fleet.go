// SPDX-License-Identifier: Apache-2.0

package sim

import "fmt"

// Fleet shares a quota over 5, 20 and 100 Envoys, where demand is skewed and moves every 20 s: under hard faults and
// in quiet, for a continuous limit and for one that holds in any minute.
func Fleet() Experiment {
	return Experiment{
		Name:  "fleet",
		About: "a quota over 5, 20 and 100 Envoys with loss, partitions, restarts and a fail-over: what is admitted, and the most ever out",
		Run:   runFleet,
	}
}

// A FleetRow is one setting of the experiment `fleet`, over all its seeds.
type FleetRow struct {
	Window       string  `json:"window"`        // continuous, or sliding 60s
	Envoys       int     `json:"envoys"`        //
	Conditions   string  `json:"conditions"`    // hard or quiet
	Goodput      float64 `json:"goodput"`       // admitted, as a part of what an ideal central limiter admits
	Spread       float64 `json:"spread"`        // standard error of goodput over the seeds
	MaxSum       float64 `json:"max_sum"`       // the most that was out at any time, as a part of the quota
	MaxWindow    float64 `json:"max_window"`    // the most that was admitted in any minute, as a part of the quota
	Owed         float64 `json:"owed"`          // the most that an exact bucket owed, in tokens
	Jain         float64 `json:"jain"`          // of what each got of its fair share
	Messages     float64 `json:"messages"`      // per Envoy and second, both ways
	WantsGoodput float64 `json:"wants_goodput"` // the least that passes; 0: none set
}

// fleetSetting is what one row runs, with the least goodput that passes. For sliding windows there is none: what a lost node
// may have spent is locked for a minute, and the row is there to show what that costs.
type fleetSetting struct {
	nodes    int
	hard     bool
	windowed bool
	least    float64
}

var fleetSettings = []fleetSetting{
	{5, true, false, 0.84}, {20, true, false, 0.92}, {100, true, false, 0.94},
	{5, false, false, 0.97}, {20, false, false, 0.97}, {100, false, false, 0.97},
	{5, true, true, 0}, {20, true, true, 0}, {100, true, true, 0},
	{5, false, true, 0.97}, {20, false, true, 0.97}, {100, false, true, 0.97},
}

// fleetSeeds is over how many runs of a setting with so many nodes a row averages; each is 600 s.
func fleetSeeds(nodes int) int {
	switch {
	case nodes <= 5:
		return 48
	case nodes <= 20:
		return 12
	}
	return 4
}

func runFleet(o Options) (*Report, error) {
	settings, seconds := fleetSettings, int64(600)
	seeds := fleetSeeds
	if o.Quick {
		settings, seconds = quickSettings(), 280
		seeds = func(int) int { return 1 }
	}
	all, done := 0, 0
	for _, s := range settings {
		all += seeds(s.nodes)
	}
	r := &Report{Name: "fleet", Seed: o.Seed, Notes: fleetNotes}
	var rows []FleetRow
	for _, s := range settings {
		row, sample := s.run(o.Seed, seeds(s.nodes), seconds, func() { done++; o.progress(done, all) })
		rows = append(rows, row)
		r.Charts = addFleetCharts(r.Charts, s, sample)
		r.Checks = append(r.Checks, row.checks(o.Quick)...)
	}
	r.Rows, r.Table = rows, fleetTable(rows)
	return r, nil
}

// quickSettings leaves out the largest fleets.
func quickSettings() (s []fleetSetting) {
	for _, x := range fleetSettings {
		if x.nodes <= 20 {
			s = append(s, x)
		}
	}
	return s
}

var fleetNotes = []string{
	"hard: 170 ms one way, 2 % loss, a partition of 5 to 35 s every 15 s, a restart every 37 s, 6 s without a controller and then a new one",
	"quiet: 40 ms one way, no loss, no faults",
	"goodput is beside one limiter that sees all demand at once, with the same burst and, for sliding 60s, the same ring",
	"max sum: continuous, of the rates; sliding, of max(cap, what the ring remembers), with what Envoys spent that are gone",
	"no lease can reach more than 0.883, 0.964, 0.992 of it (5, 20, 100, hard, continuous): who is cut off keeps its share for a time",
}

// run runs a setting with some seeds, and gives the row and one run to draw.
func (s fleetSetting) run(seed uint64, seeds int, seconds int64, progress func()) (row FleetRow, sample fleetResult) {
	row = FleetRow{Window: s.window(), Envoys: s.nodes, Conditions: s.conditions(), WantsGoodput: s.least}
	squares := 0.0
	for i := range seeds {
		w := newFleetWorld(fleetConfig{seed: seed + uint64(i), nodes: s.nodes, hard: s.hard, windowed: s.windowed, seconds: seconds, warm: 30})
		x := w.run()
		row.add(&x, float64(seeds))
		squares += x.goodput * x.goodput / float64(seeds)
		if i == 0 {
			sample = x
		}
		progress()
	}
	row.Spread = standardError(row.Goodput, squares, seeds)
	return row, sample
}

func (r *FleetRow) add(x *fleetResult, of float64) {
	r.Goodput += x.goodput / of
	r.Jain += x.jain / of
	r.Messages += x.messages / of
	r.MaxSum, r.MaxWindow, r.Owed = max(r.MaxSum, x.maxSum), max(r.MaxWindow, x.maxWindow), max(r.Owed, x.owed)
}

func (s fleetSetting) window() string {
	if s.windowed {
		return "sliding 60s"
	}
	return "continuous"
}

func (s fleetSetting) conditions() string {
	if s.hard {
		return "hard"
	}
	return "quiet"
}

// checks are what must hold: that no more was out than there is, always; goodput only over enough seeds.
func (r *FleetRow) checks(quick bool) []Check {
	name := fmt.Sprintf("%s, %d Envoys, %s", r.Window, r.Envoys, r.Conditions)
	checks := []Check{
		{name + ": the most out", "at most 1.000 of the quota", fmt.Sprintf("%.6f", r.MaxSum), r.MaxSum <= 1},
		{name + ": debt of an exact bucket", "at most a token", fmt.Sprintf("%.1f", r.Owed), r.Owed <= 1},
	}
	if r.Window != "continuous" {
		checks = append(checks, Check{name + ": in any minute", "at most 1.000 of the quota", fmt.Sprintf("%.6f", r.MaxWindow), r.MaxWindow <= 1})
	}
	if r.WantsGoodput > 0 && !quick {
		checks = append(checks, Check{name + ": goodput", fmt.Sprintf("not below %.2f by more than two standard errors", r.WantsGoodput),
			fmt.Sprintf("%.3f ± %.3f", r.Goodput, r.Spread), r.Goodput+2*r.Spread >= r.WantsGoodput})
	}
	return checks
}
