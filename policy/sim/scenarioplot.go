// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	"github.com/weirproxy/weir/policy"
)

// A plot watches one meter.
type plot struct {
	name  string
	step  policy.Step
	meter policy.Meter
	left  []Point
	limit []Point
	asks  map[*ask]bool // those that pass it
	there bool          // the policy has it now
}

const (
	plotPoints = 240 // of a curve, to the last line of the text
	morePoints = 4 * plotPoints
	maxPlots   = 6 // what is still readable
)

// watch chooses the meters that are shown: all that any request passes, as the policy has them now.
func (r *scenarioRun) watch() {
	plots := map[string]*plot{}
	for _, p := range r.plots {
		plots[p.name], p.there = p, false
	}
	for _, a := range r.asks {
		path, _ := r.path(a)
		for i := range path.Len {
			s := path.Steps[i]
			for _, m := range s.Limit.Meters {
				name := fmt.Sprintf("%s %s %s", s.Tier, r.nameOf(s.Tier, a), m.Dimension)
				if plots[name] == nil && len(r.plots) < maxPlots {
					plots[name] = &plot{name: name, asks: map[*ask]bool{}}
					r.plots = append(r.plots, plots[name])
				}
				if p := plots[name]; p != nil {
					p.step, p.meter, p.there, p.asks[a] = s, m, true, true
				}
			}
		}
	}
}

func (r *scenarioRun) nameOf(t policy.Tier, a *ask) string {
	switch {
	case t != policy.TierProvider:
		return a.caller.Key(t)
	case a.model != "":
		return a.model
	}
	return r.model
}

// sample reads every meter, and does so again as often as the end, which those that come back put off, leaves room for.
func (r *scenarioRun) sample() {
	for _, p := range r.plots {
		if len(p.left) > morePoints {
			return
		}
	}
	r.readMeters()
	if r.goesOn() {
		r.clock.After(max(r.ends/plotPoints, time.Millisecond), r.sample)
	}
}

// readMeters asks each for more than it ever admits: that is refused with what is left, and changes nothing.
func (r *scenarioRun) readMeters() {
	now := r.clock.Now()
	for _, p := range r.plots {
		if !p.there {
			continue
		}
		only := p.step
		only.Limit = &policy.Limit{Meters: []policy.Meter{p.meter}}
		var path policy.Path
		path.Add(only)
		much := p.meter.Limit() + 1
		var res policy.Reservation
		d := r.ledger.Reserve(now, &path, policy.Cost{Requests: much, Input: much, Output: much}, &res)
		p.left = append(p.left, Point{seconds(now - start), float64(d.Refusal.Remaining)})
		p.limit = append(p.limit, Point{seconds(now - start), float64(p.meter.Limit())})
	}
}

// charts shows each meter: what may be taken at once, what the last window counts, and the limit.
func (r *scenarioRun) charts() []Chart {
	var charts []Chart
	for _, p := range r.plots {
		charts = append(charts, Chart{Title: p.name, X: "s", Y: "units", Lines: []Line{
			{"left at once", p.left}, {"counted in the last " + windowName(p.meter.Window()), r.counted(p)}, {"limit", p.limit},
		}})
	}
	return charts
}

func windowName(d time.Duration) string {
	names := map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day"}
	if n := names[d]; n != "" {
		return n
	}
	return d.String()
}

// counted is what the last window counts at each point, by what the calls turned out to use.
func (r *scenarioRun) counted(p *plot) []Point {
	var calls []*admitted
	for _, c := range r.history {
		if p.asks[c.ask] {
			calls = append(calls, c)
		}
	}
	var points []Point
	var sum int64
	in, out := 0, 0
	unit, window := p.meter.Dimension.Unit(), int64(p.meter.Window())
	for _, at := range p.left {
		now := start + int64(at.X*1e9+0.5)
		for ; in < len(calls) && calls[in].at <= now; in++ {
			sum += calls[in].cost.In(unit)
		}
		for ; out < in && calls[out].at <= now-window; out++ {
			sum -= calls[out].cost.In(unit)
		}
		points = append(points, Point{at.X, float64(sum)})
	}
	return points
}
