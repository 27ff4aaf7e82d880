// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirproxy/weir/policy"
)

type replayCmd struct {
	Log    string `arg:"" help:"Envoy's access log as lines of JSON, or its own log with weir's lines in it; - is standard input." placeholder:"LOG"`
	Policy string `required:"" help:"The policy to ask what it would have done." type:"path" placeholder:"FILE"`
	Top    int    `help:"How many tenants and users to size limits for, those with the most tokens first." default:"10"`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Help is shown by weir replay --help.
func (replayCmd) Help() string {
	return "Each request of the log is put to the policy's limits at the time when it came, on the code of the filter. The log has to say when, and who asked: log: {access: true, caller: true} in the policy, and an access log of JSON (docs/operate.md).\n\n" +
		"Not judged: shares of classes, trees, queues (who would wait counts as refused), and calls in flight where the log has no durations.\n\n" +
		"Examples:\n\n  weir replay access.log --policy new.yaml\n  weir replay access.log --policy new.yaml --json"
}

func (c *replayCmd) Run(s streams) error {
	r, err := readPolicy(c.Policy, s)
	if err != nil {
		return err
	}
	if r, err = alone(r); err != nil {
		return err
	}
	in, done, err := open(c.Log, s)
	if err != nil {
		return err
	}
	defer done()
	all, skipped, err := readDecided(in)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", c.Log, err)
	}
	if len(all) == 0 {
		return usagef("%s has no line with a time and a decision of weir's (of %d): see docs/operate.md for how to write such a log", c.Log, skipped)
	}
	report := replay(r.Policy, all)
	report.Skipped = skipped
	report.size(all, c.Top)
	if c.JSON {
		return printJSON(s.out, report)
	}
	fmt.Fprint(s.out, report.text(newPaint(s.out)))
	return nil
}

// A replayed is what a policy would have done with the requests of a log.
type replayed struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Requests int       `json:"requests"`
	Skipped  int       `json:"skipped_lines"`

	NoProvider int `json:"no_provider"`  // the policy has none of the name
	NoCost     int `json:"unknown_cost"` // counted as a request without tokens, for the log does not say how many it asked for

	RefusedThen  int `json:"refused_then"`
	RefusedNow   int `json:"refused_now"`
	NewlyRefused int `json:"newly_refused"`
	NewlyPassed  int `json:"newly_admitted"`
	WouldWait    int `json:"would_wait"` // of those that are refused now: their class queues

	By    []refusals `json:"refused_by"`
	Sizes []sizing   `json:"sizes"`
}

// refusals are those of one limit.
type refusals struct {
	Tier      string `json:"tier"`
	Key       string `json:"key"`
	Dimension string `json:"dimension"`
	Limit     int64  `json:"limit"`
	Reason    string `json:"reason"`
	Requests  int    `json:"requests"`
}

// replay puts each request to the policy, one after the other.
func replay(p *policy.Policy, all []decided) *replayed {
	w := newReplayWorld(p)
	out := &replayed{From: all[0].at, To: all[len(all)-1].at, Requests: len(all), By: []refusals{}}
	for i := range all {
		d := &all[i]
		then := d.word("decision") == policy.Deny.String()
		if then {
			out.RefusedThen++
		}
		q, ok := w.request(d)
		if !ok {
			out.NoProvider++
			continue
		}
		if !q.known {
			out.NoCost++
		}
		refusal, refused := w.put(q)
		if refused {
			out.RefusedNow++
			out.refused(refusal, q)
			if q.class.OnLimit == policy.OnLimitQueue && refusal.Reason != policy.RequestTooLarge {
				out.WouldWait++
			}
		}
		switch {
		case refused && !then:
			out.NewlyRefused++
		case !refused && then:
			out.NewlyPassed++
		}
	}
	slices.SortStableFunc(out.By, func(a, b refusals) int { return b.Requests - a.Requests })
	return out
}

// refused counts a refusal.
func (out *replayed) refused(r *policy.Refusal, q *replayRequest) {
	n := refusals{Tier: r.Tier.String(), Key: q.key(r.Tier), Dimension: r.Dimension.String(), Limit: r.Limit, Reason: r.Reason.String(), Requests: 1}
	for i := range out.By {
		if o := &out.By[i]; o.Tier == n.Tier && o.Key == n.Key && o.Dimension == n.Dimension && o.Limit == n.Limit && o.Reason == n.Reason {
			o.Requests++
			return
		}
	}
	out.By = append(out.By, n)
}
