// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/policy"
)

type usageCmd struct {
	Log    []string `arg:"" help:"Envoy's access logs as lines of JSON, or its own logs with weir's lines in them; - is standard input." placeholder:"LOG"`
	By     string   `help:"Also tell apart by user, model or both." enum:"tenant,user,model,user+model" default:"tenant"`
	Policy string   `help:"The policy whose prices say what it cost." type:"path" placeholder:"FILE"`
	Zone   string   `help:"Where days begin, such as America/New_York." default:"UTC"`
	CSV    bool     `name:"csv" help:"Print CSV."`
	JSON   bool     `name:"json" help:"Print JSON."`
}

// Help is shown by weir usage --help.
func (usageCmd) Help() string {
	return "It adds up what calls were charged, by day and tenant. The figures come from logs, for the control plane knows callers only by fingerprints: log: {access: true, caller: true} in the policy, and an access log of JSON (docs/operate.md).\n\n" +
		"Examples:\n\n  weir usage access.log --csv > usage.csv\n  weir usage access.log --by model --policy policy.yaml"
}

// A used is what somebody has used on a day.
type used struct {
	Day      string  `json:"day"`
	Tenant   string  `json:"tenant"`
	User     string  `json:"user,omitempty"`
	Model    string  `json:"model,omitempty"`
	Requests int64   `json:"requests"`
	Admitted int64   `json:"admitted"`
	Denied   int64   `json:"denied"`
	Input    int64   `json:"input_tokens"`
	Output   int64   `json:"output_tokens"`
	USD      float64 `json:"usd"`

	micro int64 // dollars
}

func (c *usageCmd) Run(s streams) error {
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		return usagef("--zone %q is no time zone", c.Zone)
	}
	rating := func(string) policy.Rating { return policy.Rating{} }
	if c.Policy != "" {
		r, err := readPolicy(c.Policy, s)
		if err != nil {
			return err
		}
		rating = r.Policy.Rating
	}
	all := map[used]*used{}
	for _, name := range c.Log {
		in, done, err := open(name, s)
		if err != nil {
			return err
		}
		lines, skipped, err := readDecided(in)
		done()
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", name, err)
		}
		if len(lines) == 0 {
			return usagef("%s has no line with a time and a decision of weir's (of %d): see docs/operate.md for how to write such a log", name, skipped)
		}
		for i := range lines {
			c.add(all, &lines[i], zone, rating)
		}
	}
	rows := slices.SortedFunc(maps.Values(all), func(a, b *used) int {
		return cmp.Or(strings.Compare(a.Day, b.Day), strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.User, b.User), strings.Compare(a.Model, b.Model))
	})
	for _, u := range rows {
		u.USD = dollars(u.micro)
	}
	return c.print(s, rows)
}

// add counts a request.
func (c *usageCmd) add(all map[used]*used, d *decided, zone *time.Location, rating func(string) policy.Rating) {
	key := used{Day: d.at.In(zone).Format(time.DateOnly), Tenant: cmp.Or(d.word("tenant"), policy.Unknown)}
	if strings.Contains(c.By, "user") {
		key.User = cmp.Or(d.word("user"), policy.Unknown)
	}
	if strings.Contains(c.By, "model") {
		key.Model = cmp.Or(d.word("model"), policy.Unknown)
	}
	u := all[key]
	if u == nil {
		u = new(key)
		all[key] = u
	}
	u.Requests++
	switch d.word("decision") {
	case policy.Deny.String():
		u.Denied++
	case policy.Admit.String(), policy.Degraded.String(), policy.Spilled.String():
		u.Admitted++
	}
	t := policy.TokenCounts{Input: d.counted("charged_input"), Output: d.counted("charged_output")}
	u.Input, u.Output = u.Input+t.Input, u.Output+t.Output
	r := rating(d.word("model"))
	u.micro += r.Cost(t).Spend
}

func (c *usageCmd) print(s streams, rows []*used) error {
	if c.JSON {
		return printJSON(s.out, rows)
	}
	head := []string{"day", "tenant", "user", "model", "requests", "admitted", "denied", "input_tokens", "output_tokens", "usd"}
	keep := func(row []string) (kept []string) {
		for i, cell := range row {
			if i == 2 && !strings.Contains(c.By, "user") || i == 3 && !strings.Contains(c.By, "model") || i == 9 && c.Policy == "" {
				continue
			}
			kept = append(kept, cell)
		}
		return kept
	}
	table := [][]string{keep(head)}
	for _, u := range rows {
		table = append(table, keep([]string{
			u.Day, u.Tenant, u.User, u.Model, fmt.Sprint(u.Requests), fmt.Sprint(u.Admitted), fmt.Sprint(u.Denied), fmt.Sprint(u.Input), fmt.Sprint(u.Output), fmt.Sprintf("%.6f", u.USD),
		}))
	}
	if c.CSV {
		for _, row := range table[1:] {
			for i, cell := range row {
				if cell != "" && strings.ContainsRune("=+-@\t", rune(cell[0])) {
					row[i] = "'" + cell // a caller's name that a spreadsheet would run as a formula
				}
			}
		}
		return csv.NewWriter(s.out).WriteAll(table)
	}
	_, err := fmt.Fprint(s.out, columns(table, strings.Count(c.By, "+")+2+min(strings.Count(c.By, "user")+strings.Count(c.By, "model"), 1)))
	return err
}
