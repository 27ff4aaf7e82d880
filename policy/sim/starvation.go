// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/weirproxy/weir/policy/queue"
)

// Starvation is 8 normal calls and then a critical one as often as the client may send at all, under each discipline of the
// queue. It is the second table of the reference simulation.
func Starvation() Experiment {
	return Experiment{
		Name:  "starvation",
		About: "8 normal calls behind a stream of critical ones: strict, aging, weighted, FIFO (rows J to S)",
		Run:   runStarvation,
	}
}

const (
	starvationRate = 4 // calls a second
	normalCalls    = 8
	criticalStream = 32
	criticalEvery  = 250 * time.Millisecond
)

// weights is weighted fair queueing of critical to 1 normal.
func weights(critical int64) queue.Config {
	return queue.Config{Discipline: queue.Weighted, Classes: []queue.Class{{Weight: critical}, {Weight: 1}}}
}

var starvationRows = []struct {
	row, what               string
	queue                   queue.Config
	total, critical, normal float64 // s, by mission F
}{
	{"J", "strict priority", twoClasses(queue.Strict), 9.62, 8.12, 9.62},
	{"K", "linear aging 0.5/s", queue.Config{Discipline: queue.Linear, Rate: 0.5, Classes: []queue.Class{{Priority: 1}, {Priority: 0}}}, 9.62, 9.62, 3.37},
	{"M", "threshold aging 2 s", queue.Config{Discipline: queue.Threshold, Classes: []queue.Class{{}, {Threshold: 2 * time.Second}}}, 9.62, 9.62, 3.37},
	{"P", "weighted 3:1", weights(3), 9.62, 9.62, 6.12},
	{"Q", "weighted 2:1", weights(2), 9.62, 9.62, 4.62},
	{"R", "weighted 5:1", weights(5), 9.62, 9.62, 9.12},
	{"S", "FIFO", twoClasses(queue.FIFO), 9.62, 9.62, 1.62},
}

func runStarvation(o Options) (*Report, error) {
	r := &Report{Name: "starvation", Seed: o.Seed}
	r.Table.Header = []string{"row", "discipline", "total s", "critical s", "longest normal wait s"}
	chart := Chart{Title: "normal calls done", X: "s", Y: "calls"}
	var rows []AgentRow
	for i, s := range starvationRows {
		a, err := newAgents(client{rate: starvationRate, queue: s.queue, retry: true}, o, "starvation "+s.row)
		if err != nil {
			return nil, err
		}
		for range normalCalls {
			a.arrive(0, normal)
		}
		for n := range criticalStream {
			a.arrive(time.Duration(n+1)*criticalEvery, critical)
		}
		a.clock.Drain()
		row := a.row(s.row, s.what)
		want := exactly(s.row, 0, 0, 0, s.total, s.critical)
		want.waitMost = s.normal
		rows = append(rows, row)
		r.Checks = append(r.Checks, want.check(row))
		r.Table.Lines = append(r.Table.Lines, []string{row.Row, row.Client, text(row.TotalS), text(row.CriticalS), text(row.LongestNormalWait)})
		chart.Lines = append(chart.Lines, Line{s.row + " " + s.what, a.doneOf(normal)})
		o.progress(i+1, len(starvationRows))
	}
	r.Rows, r.Charts = rows, []Chart{chart}
	r.Notes = []string{"What aging and weights give to normal calls, the last critical one pays: the total is the same in all rows."}
	return r, nil
}

// doneOf gives how many calls of a class were done over time.
func (a *agents) doneOf(class int) []Point {
	var points []Point
	for _, c := range a.calls {
		if c.class == class {
			points = append(points, Point{seconds(c.done), float64(len(points) + 1)})
		}
	}
	return points
}
