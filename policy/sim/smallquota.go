// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
)

// SmallQuota shares ten calls a minute over fifty Envoys, where a share of the rate is of no use to anybody.
func SmallQuota() Experiment {
	return Experiment{
		Name:  "small-quota",
		About: "10 calls a minute over 50 Envoys: whole tokens on demand beside a fixed share for each",
		Run:   runSmallQuota,
	}
}

// A SmallQuotaRow is one setting of the experiment `small-quota`. All counts are per minute, over the fleet.
type SmallQuotaRow struct {
	Window   string  `json:"window"`
	Skewed   bool    `json:"skewed"`
	Offered  float64 `json:"offered"`
	Mode     string  `json:"mode"` // escrow or static
	Loss     float64 `json:"loss"` // of messages
	Admitted float64 `json:"admitted"`
	Ideal    float64 `json:"ideal"` // what one central bucket admits
	P50      float64 `json:"p50_s"` // wait
	P95      float64 `json:"p95_s"`
	Messages float64 `json:"messages"`
	Struck   float64 `json:"struck"` // tokens lost
	Owed     float64 `json:"owed"`   // the most that an exact bucket owed, in calls
	MostIn60 int64   `json:"most_in_60s"`
}

func smallQuotaSettings(quick bool) (s []smallConfig) {
	for _, windowed := range []bool{false, true} {
		for _, skewed := range []bool{false, true} {
			for _, offered := range []float64{6, 12, 60} {
				for _, loss := range []float64{-1, 0, 0.02} {
					c := smallConfig{windowed: windowed, skewed: skewed, offered: offered, loss: max(loss, 0), static: loss < 0, hours: 10}
					if quick {
						c.hours = 1
					}
					if windowed && c.static || quick && skewed {
						continue
					}
					s = append(s, c)
				}
			}
		}
	}
	return s
}

func runSmallQuota(o Options) (*Report, error) {
	settings := smallQuotaSettings(o.Quick)
	r := &Report{Name: "small-quota", Seed: o.Seed, Notes: []string{
		"10 calls a minute, burst 10, 50 Envoys, 170 ms one way, a call waits for at most 10 s; skewed: demand by Zipf's law",
		"static: a bucket of one call in each Envoy, refilled at its 50th part of the rate, as limiters do that give each at least one",
		"ideal: one central bucket and one queue, no network",
	}}
	var rows []SmallQuotaRow
	for i, c := range settings {
		row := newSmallWorld(o.Seed, c).run()
		rows = append(rows, row)
		r.Checks = append(r.Checks, row.checks()...)
		o.progress(i+1, len(settings))
	}
	r.Rows, r.Table = rows, smallQuotaTable(rows)
	r.Charts = smallQuotaCharts(rows)
	return r, nil
}

// checks are what must hold for whole tokens: no more than the quota, and nearly all of it.
func (r *SmallQuotaRow) checks() []Check {
	if r.Mode != "escrow" {
		return nil
	}
	name := fmt.Sprintf("%s, %g offered, skewed %v, loss %g", r.Window, r.Offered, r.Skewed, r.Loss)
	checks := []Check{{name + ": debt of an exact bucket", "at most 0", fmt.Sprintf("%.3f", r.Owed), r.Owed <= 1e-6}}
	if r.Window != "continuous" {
		checks = append(checks, Check{name + ": in any minute", "at most 10", fmt.Sprint(r.MostIn60), r.MostIn60 <= 10})
	}
	least := 0.95
	return append(checks, Check{name + ": admitted", fmt.Sprintf("at least %.2f of the ideal", least), fmt.Sprintf("%.3f", r.Admitted/r.Ideal), r.Admitted >= least*r.Ideal})
}

func smallQuotaTable(rows []SmallQuotaRow) Table {
	t := Table{Header: []string{"window", "mode", "skewed", "offered", "loss", "admitted", "ideal", "wait p50", "p95", "messages", "struck", "owed", "any minute"}}
	for _, r := range rows {
		t.Lines = append(t.Lines, []string{
			r.Window, r.Mode, fmt.Sprint(r.Skewed), fmt.Sprint(r.Offered), fmt.Sprintf("%.0f %%", 100*r.Loss), fmt.Sprintf("%.2f", r.Admitted),
			fmt.Sprintf("%.2f", r.Ideal), fmt.Sprintf("%.2f", r.P50), fmt.Sprintf("%.2f", r.P95), fmt.Sprintf("%.0f", r.Messages),
			fmt.Sprintf("%.2f", r.Struck), fmt.Sprintf("%.1f", r.Owed), fmt.Sprint(r.MostIn60),
		})
	}
	return t
}

func smallQuotaCharts(rows []SmallQuotaRow) []Chart {
	lines := map[string]*Line{}
	chart := Chart{Title: "admitted, continuous, even demand", X: "offered a minute", Y: "admitted a minute"}
	for _, name := range []string{"static", "escrow", "ideal"} {
		lines[name] = &Line{Name: name}
	}
	for _, r := range rows {
		if r.Window == "continuous" && !r.Skewed && r.Loss == 0 {
			lines[r.Mode].Points = append(lines[r.Mode].Points, Point{r.Offered, r.Admitted})
			if r.Mode == "escrow" {
				lines["ideal"].Points = append(lines["ideal"].Points, Point{r.Offered, r.Ideal})
			}
		}
	}
	for _, name := range []string{"static", "escrow", "ideal"} {
		chart.Lines = append(chart.Lines, *lines[name])
	}
	return []Chart{chart}
}
