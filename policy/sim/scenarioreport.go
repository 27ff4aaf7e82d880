// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strconv"

	"github.com/weirproxy/weir/policy"
)

// A ScenarioRow is what became of one line of requests.
type ScenarioRow struct {
	Line      int     `json:"line"`
	Text      string  `json:"text"`
	Asked     int     `json:"asked"`
	Admitted  int     `json:"admitted"`
	Refused   int     `json:"refused"`
	Reason    string  `json:"reason,omitempty"` // of the first refusal
	Tier      string  `json:"tier,omitempty"`
	Dimension string  `json:"dimension,omitempty"`
	WaitS     float64 `json:"wait_s,omitempty"`
	Left      int64   `json:"left,omitempty"`
}

func (r *scenarioRun) report() *Report {
	rep := &Report{Name: r.File, Charts: r.charts()}
	rep.Table.Header = []string{"line", "what happens", "asked", "admitted", "refused", "why (the first)"}
	rows := []ScenarioRow{}
	for _, a := range r.asks {
		row := ScenarioRow{Line: a.line, Text: a.text, Asked: a.asked, Admitted: a.admitted, Refused: a.refused}
		why := ""
		if f := a.first.Refusal; a.first.Verdict != policy.Admit {
			row.Reason, row.Left, why = f.Reason.String(), f.Remaining, refusalText(f)
			if f.Limit > 0 {
				row.Tier, row.Dimension = f.Tier.String(), f.Dimension.String()
			}
			if f.Reason != policy.RequestTooLarge {
				row.WaitS = f.Wait.Seconds()
			}
		}
		rows = append(rows, row)
		n := strconv.Itoa
		rep.Table.Lines = append(rep.Table.Lines, []string{n(a.line), a.text, n(a.asked), n(a.admitted), n(a.refused), why})
	}
	rep.Rows = rows
	for i := range r.wants {
		rep.Checks = append(rep.Checks, r.wants[i].check(r))
	}
	if r.Title != "" {
		rep.Notes = []string{r.Title}
	}
	return rep
}
