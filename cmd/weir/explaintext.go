// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/policy"
)

// text is the explanation for people.
func (e *explanation) text(p paint) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("path", "%s", e.Path)
	if e.Provider != "" {
		line("goes to", "provider %s, %s", e.Provider, e.what())
		line("caller", "%s", e.Caller)
	}
	if e.Class != "" {
		line("class", "%s", e.Class)
	}
	if k := e.Cost; k != nil {
		line("requests", "%d", k.Requests)
		line("input", "%d tokens: %s", k.Input, k.InputFrom)
		line("output", "%d tokens: %s", k.Output, k.OutputFrom)
		if k.Prices != nil {
			line("money", "%.6f USD: %v for a million tokens of input, %v of output", k.USD, k.Prices.Input, k.Prices.Output)
		}
	}
	if len(e.Limits) > 0 {
		b.WriteString("\n" + columns(e.rows(), 3) + "\n")
	}
	if e.Mode != policy.Enforce.String() {
		line("mode", "%s", p.yellow(e.Mode+": nothing is refused"))
	}
	line("decision", "%s", e.First.text(p))
	if e.By != nil {
		verb := "refuses"
		if e.Then != nil && e.Then.Does == "admit" {
			verb = "would refuse, if it did not only watch"
		}
		whose := e.By.Tier
		if e.By.OfClass {
			whose = "the class's part of " + whose
		}
		line("at once", "%d such requests; then %s %s (%d) %s%s", e.AtOnce, whose, e.By.Dimension, e.By.Limit, verb, waitText(e.By.WaitS))
		line("then", "%s", e.Then.text(p))
	} else if e.AtOnce > 0 {
		line("at once", "%d such requests and more", e.AtOnce)
	}
	return b.String()
}

func waitText(s float64) string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf(", until %v later", time.Duration(s*float64(time.Second)).Round(time.Millisecond))
}

// short is a duration without the parts that are zero: 1m, 24h.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (e *explanation) what() string {
	s := e.API
	if e.Model != "" {
		s += ", model " + e.Model
	}
	if e.Entry != "" {
		s += fmt.Sprintf(" (entry %q)", e.Entry)
	}
	return s
}

func (c callerNames) String() string {
	var all []string
	for _, f := range [][2]string{{"environment", c.Environment}, {"tenant", c.Tenant}, {"user", c.User}, {"tree", c.Tree}, {"tool", c.Tool}} {
		if f[1] != "" {
			all = append(all, f[0]+" "+f[1])
		}
	}
	return strings.Join(all, ", ")
}

func (e *explanation) rows() [][]string {
	rows := [][]string{{"tier", "key", "dimension", "limit", "window", "at once", "needs", "mode"}}
	for _, m := range e.Limits {
		window, once := "-", "-"
		if m.WindowS > 0 {
			window = short(time.Duration(m.WindowS * float64(time.Second)))
		}
		if m.Burst > 0 {
			once = fmt.Sprint(m.Burst)
		}
		rows = append(rows, slices.Concat([]string{m.Tier, m.Key, m.Dimension}, []string{fmt.Sprint(m.Limit), window, once, fmt.Sprint(m.Need), m.Mode}))
	}
	return rows
}

// text says what becomes of a request.
func (o *outcome) text(p paint) string {
	s := p.green("admit")
	switch {
	case o.Does == "deny":
		s = p.red(fmt.Sprintf("deny, %d %s", o.Status, o.Reason))
	case o.Does == "queue":
		s = p.yellow(fmt.Sprintf("queue, for %gs at most", o.WaitS))
		if o.Reason != "" {
			s += fmt.Sprintf(", and then deny, %d %s", o.Status, o.Reason)
		}
	case o.Does != "admit" && o.Status > 0:
		s = p.yellow(o.Does + " to a fixed reply")
	case o.Does != "admit":
		s = p.yellow(strings.TrimSuffix(fmt.Sprintf("%s to %s", o.Does, strings.TrimSpace(o.Provider+" "+o.Model)), " "))
	}
	if o.Message != "" {
		s += "\n          " + o.Message
	}
	return s
}
