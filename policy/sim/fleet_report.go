// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
)

// standardError is that of a mean over n samples, from the mean of their squares.
func standardError(mean, squares float64, n int) float64 {
	return math.Sqrt(max(squares-mean*mean, 0) / float64(n))
}

func fleetTable(rows []FleetRow) Table {
	t := Table{Header: []string{"window", "conditions", "Envoys", "goodput", "±", "most out", "any minute", "Jain", "messages"}}
	for _, r := range rows {
		t.Lines = append(t.Lines, []string{
			r.Window, r.Conditions, fmt.Sprint(r.Envoys), fmt.Sprintf("%.3f", r.Goodput), fmt.Sprintf("%.3f", r.Spread),
			fmt.Sprintf("%.3f", r.MaxSum), fmt.Sprintf("%.3f", r.MaxWindow), fmt.Sprintf("%.3f", r.Jain), fmt.Sprintf("%.2f", r.Messages),
		})
	}
	return t
}

// addFleetCharts draws the runs under hard conditions: what was out, and goodput, over time.
func addFleetCharts(charts []Chart, s fleetSetting, x fleetResult) []Chart {
	if !s.hard {
		return charts
	}
	if len(charts) == 0 {
		charts = []Chart{
			{Title: "out, as a part of the quota", X: "s", Y: "sum/quota"},
			{Title: "admitted, as a part of the ideal", X: "s", Y: "goodput"},
		}
	}
	name := fmt.Sprintf("%s, %d Envoys", s.window(), s.nodes)
	charts[0].Lines = append(charts[0].Lines, Line{name, x.sum})
	charts[1].Lines = append(charts[1].Lines, Line{name, x.goodputs})
	return charts
}
