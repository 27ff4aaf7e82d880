// SPDX-License-Identifier: Apache-2.0

package sim

import "fmt"

var aimdNotes = []string{
	"The limit of the policy is 150 requests a second if it does not say otherwise, the provider gives 100 (or 40) and takes 5 at once; clients always have more to send.",
	"delay: from an answer to the rate that follows from it. sawtooth: from one cut to the next. settle: until the rate is within 15 % of a stepped capacity.",
	"every 429 cuts: for contrast, without epochs and cool-down.",
	"by share: between 1 % and 5 % of rejections it stays where it is, so it uses all there is and pays with as many; it climbs by a step in five minutes.",
	"The additive step is of the limit: the further the limit lies above the capacity, the coarser it is; the last rows show how much that costs.",
}

// aimdChecks are what the rows of one variant and delay are held to.
func aimdChecks(steady, stepped *AIMDRow) []Check {
	name := fmt.Sprintf("%s, delay %g s", steady.Variant, steady.DelayS)
	var checks []Check
	add := func(ok bool, what, want, format string, found ...any) {
		checks = append(checks, Check{name + ": " + what, want, fmt.Sprintf(format, found...), ok})
	}
	least := map[string]float64{"defaults": 0.83, "climb: fast": 0.93}[steady.Variant]
	if least == 0 {
		return nil
	}
	add(steady.Utilisation >= least, "utilisation at constant capacity", fmt.Sprintf(">= %.2f", least), "%.3f", steady.Utilisation)
	add(steady.Rejected < 0.01, "429s at constant capacity", "< 1 %", "%.2f %%", 100*steady.Rejected)
	add(steady.CutsPerEpoch == 1 && stepped.CutsPerEpoch == 1, "cuts in an epoch", "1", "%.2f, %.2f", steady.CutsPerEpoch, stepped.CutsPerEpoch)
	add(steady.LowestRate > aimdLimit/10, "constant capacity never takes the rate to its floor", fmt.Sprintf("> %d/s", aimdLimit/10), "%.1f/s", steady.LowestRate)
	if p := steady.PeriodS; p != nil {
		for _, s := range []struct {
			what string
			took *float64
		}{{"settles on 40/s", stepped.SettleDownS}, {"settles on 100/s again", stepped.SettleUpS}} {
			add(s.took != nil && *s.took <= 3**p, s.what, fmt.Sprintf("in 3 sawtooth periods (%.0f s)", 3**p), "%s s", optional(s.took))
		}
	}
	return checks
}

func aimdTable(rows []AIMDRow) Table {
	t := Table{Header: []string{"variant", "capacity", "limit /s", "delay s", "utilisation", "429s %", "cuts", "cuts/epoch", "sawtooth s", "lowest /s", "settle down s", "settle up s"}}
	for _, r := range rows {
		t.Lines = append(t.Lines, []string{
			r.Variant, r.Capacity, fmt.Sprintf("%g", r.Limit), fmt.Sprintf("%g", r.DelayS), fmt.Sprintf("%.3f", r.Utilisation), fmt.Sprintf("%.2f", 100*r.Rejected),
			fmt.Sprint(r.Cuts), fmt.Sprintf("%.2f", r.CutsPerEpoch), optional(r.PeriodS), fmt.Sprintf("%.1f", r.LowestRate),
			optional(r.SettleDownS), optional(r.SettleUpS),
		})
	}
	return t
}

// aimdChart shows the rate and the capacity over time.
func aimdChart(row *AIMDRow, o Options) Chart {
	down, up, end := stepAt(o)
	capacity := []Point{{0, fullCapacity}, {seconds(down), fullCapacity}, {seconds(down), lowCapacity}, {seconds(up), lowCapacity}, {seconds(up), fullCapacity}, {seconds(end), fullCapacity}}
	return Chart{
		Title: fmt.Sprintf("%s, delay %g s", row.Variant, row.DelayS), X: "s", Y: "requests/s",
		Lines: []Line{{"rate", changesOf(row.rates)}, {"capacity", capacity}},
	}
}

// changesOf leaves out points that say the same as the one before and the one after.
func changesOf(points []Point) []Point {
	var kept []Point
	for i, p := range points {
		if i == 0 || i == len(points)-1 || p.Y != points[i-1].Y || p.Y != points[i+1].Y {
			kept = append(kept, p)
		}
	}
	return kept
}
