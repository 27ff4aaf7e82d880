// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/controlplane"
	"github.com/weirproxy/weir/controlplane/fleet"
)

type topCmd struct {
	Once  bool          `help:"Print one frame and end; so it is where the output is no terminal."`
	Every time.Duration `help:"How often to look." default:"1s"`
	Rows  int           `help:"The most limits to show, the fullest first." default:"20"`
	JSON  bool          `name:"json" help:"Print the control plane's status as JSON, a line each time."`
	controlFlags
}

// Help is shown by weir top --help.
func (topCmd) Help() string {
	return "What is used of which limit, by the demand that Envoys report. Callers are shown by a fingerprint. Ctrl-C ends it.\n\n" +
		"Examples:\n\n  weir top\n  weir top --once --control 127.0.0.1:10088"
}

func (c *topCmd) Run(ctx context.Context, s streams) error {
	if c.Every < 100*time.Millisecond {
		return usagef("--every %v: ten times a second at most", c.Every)
	}
	control, err := c.dial()
	if err != nil {
		return err
	}
	live := isTerminal(s.out) && !c.Once
	v := topView{paint: newPaint(s.out), rows: max(c.Rows, 1)}
	for shown := false; ; shown = true {
		st, err := control.status(ctx)
		if err != nil && (!shown || !live || ctx.Err() != nil) {
			return err
		}
		switch {
		case err != nil:
			fmt.Fprintln(s.out, v.paint.red(err.Error()))
		case c.JSON:
			err = json.NewEncoder(s.out).Encode(st)
		default:
			frame := v.frame(&st, time.Now())
			if live {
				frame = "\x1b[H\x1b[2J" + frame // from the corner of a cleared screen
			}
			_, err = io.WriteString(s.out, frame)
		}
		if err != nil && !live || !live {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.Every):
		}
	}
}

// A topView makes frames, each of which knows of the one before.
type topView struct {
	paint paint
	rows  int
	last  map[string]int64 // denied, by limit
	at    time.Time
}

// frame is what one look has found.
func (v *topView) frame(st *controlplane.Status, now time.Time) string {
	var b strings.Builder
	state := v.paint.green("ready")
	if !st.Ready {
		state = v.paint.red("not ready: " + st.NotReady)
	}
	fmt.Fprintf(&b, "weir %s, %s", state, now.Format(time.TimeOnly))
	if st.Policy != nil {
		fmt.Fprintf(&b, ", policy %s, mode %s", st.Policy.Version, st.Policy.Mode)
	}
	b.WriteString("\n")
	if st.Enforce != controlplane.EnforceOn {
		b.WriteString(v.paint.red("enforce is "+st.Enforce+": nothing is refused") + "\n")
	}
	for _, bad := range []struct{ what, text string }{{"store", st.StoreAway}, {"fleet", st.Fleet.Store}, {"credentials", st.Access.Problem}} {
		if bad.text != "" {
			b.WriteString(v.paint.red(bad.what+": "+bad.text) + "\n")
		}
	}
	if st.Problem != nil {
		b.WriteString(v.paint.red("the policy file has errors: "+st.Problem.Message) + "\n")
	}
	for _, g := range st.Grants {
		fmt.Fprintf(&b, "grant: %s has %d more %s for %v\n", g.Tenant, int64(g.Add), g.Limit, g.Until.Sub(now).Round(time.Second))
	}
	b.WriteString("\n" + v.limits(&st.Fleet, now) + "\n" + v.envoys(st, now))
	return b.String()
}

// limits are the rows of limits in use, the fullest first.
func (v *topView) limits(f *fleet.Status, now time.Time) string {
	if len(f.Quotas) == 0 {
		return "No Envoy reports the use of a limit.\n"
	}
	all := slices.Clone(f.Quotas)
	slices.SortStableFunc(all, func(a, b fleet.Quota) int { return cmp.Compare(usedOf(&b), usedOf(&a)) })
	rows := [][]string{{"limit", "", "dimension", "in force", "policy", "demand", "used", "denied", "denied/s", "queued"}}
	seen, since := map[string]int64{}, now.Sub(v.at).Seconds()
	for _, q := range all {
		name := q.Quota + " " + q.Dimension
		seen[name] = q.Denied
	}
	for _, q := range all[:min(len(all), v.rows)] {
		perSecond := "-"
		if was, ok := v.last[q.Quota+" "+q.Dimension]; ok && q.Denied >= was && since > 0 {
			perSecond = fmt.Sprintf("%.1f", float64(q.Denied-was)/since)
		}
		used := usedOf(&q)
		rows = append(rows, []string{
			q.Quota, useBar(used), q.Dimension, fmt.Sprint(q.Limit), fmt.Sprint(q.Policy), fmt.Sprint(demandOf(&q)), fmt.Sprintf("%.0f%%", used*100),
			fmt.Sprint(q.Denied), perSecond, fmt.Sprint(q.Queued),
		})
	}
	v.last, v.at = seen, now
	text := columns(rows, 3)
	if more := f.Total - min(len(all), v.rows); more > 0 {
		text += fmt.Sprintf("and %d more\n", more)
	}
	return text
}

// demandOf is what nodes ask for in a window; of a stock, what they were given.
func demandOf(q *fleet.Quota) (n int64) {
	for _, h := range q.Holders {
		n += h.Demand
	}
	if q.Kind != "shares" {
		return q.Granted
	}
	return n
}

func usedOf(q *fleet.Quota) float64 {
	if q.Limit == 0 {
		return 0
	}
	return float64(demandOf(q)) / float64(q.Limit)
}

// useBar shows a part of a whole.
func useBar(part float64) string {
	const width = 20
	n := int(min(max(part, 0), 1)*width + 0.5)
	return strings.Repeat("#", n) + strings.Repeat(".", width-n)
}

func (v *topView) envoys(st *controlplane.Status, now time.Time) string {
	if len(st.Nodes) == 0 {
		return "No Envoy is connected.\n"
	}
	rows := [][]string{{"envoy", "policy", "for", "version"}}
	for _, n := range st.Nodes {
		policy := cmp.Or(n.Policy, "none")
		if bad := cmp.Or(n.Refused, n.Problem); bad != "" {
			policy += " (" + bad + ")"
		}
		rows = append(rows, []string{n.ID, policy, now.Sub(n.Since).Round(time.Second).String(), n.Envoy})
	}
	return columns(rows, 2)
}
