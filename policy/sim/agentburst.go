// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/weirproxy/weir/policy/queue"
)

// AgentBurst is 30 calls at once, three of them critical, at a server that takes 5 a second: without a limiter, with a cap
// on calls in flight, and with a client bucket. It is the first table of the reference simulation.
func AgentBurst() Experiment {
	return Experiment{
		Name:  "agent-burst",
		About: "30 calls at once against 5 a second: backoff, a cap in flight, a client bucket, priority (rows A to I)",
		Run:   runAgentBurst,
	}
}

const burstCalls = 30

// criticalCalls are the numbers of the critical ones, from 0.
var criticalCalls = map[int]bool{10: true, 18: true, 25: true}

// twoClasses is critical before normal.
func twoClasses(d queue.Discipline) queue.Config {
	return queue.Config{Discipline: d, Classes: make([]queue.Class, 2)}
}

var burstRows = []struct {
	row, what string
	client    client
}{
	{"A", "none, no retry", client{queue: twoClasses(queue.FIFO)}},
	{"B", "none, backoff", client{queue: twoClasses(queue.FIFO), retry: true}},
	{"C", "4 in flight, backoff", client{queue: twoClasses(queue.FIFO), inFlight: 4, retry: true}},
	{"D", "2 in flight, backoff", client{queue: twoClasses(queue.FIFO), inFlight: 2, retry: true}},
	{"E", "bucket 4/s, FIFO", client{queue: twoClasses(queue.FIFO), rate: 4, retry: true}},
	{"F", "bucket 4/s, priority", client{queue: twoClasses(queue.Strict), rate: 4, retry: true}},
	{"G", "bucket 5/s, FIFO", client{queue: twoClasses(queue.FIFO), rate: 5, retry: true}},
	{"H", "bucket 5/s, priority", client{queue: twoClasses(queue.Strict), rate: 5, retry: true}},
	{"I", "bucket 6/s, priority", client{queue: twoClasses(queue.Strict), rate: 6, retry: true}},
}

// exactly is a row whose numbers do not depend on chance.
func exactly(row string, rejections, retries, failed int, total, critical float64) wanted {
	return wanted{row: row, rejections: [2]int{rejections, rejections}, retries: [2]int{retries, retries}, failed: failed,
		total: [2]float64{total, total}, critical: critical, noCritical: critical == 0}
}

// burstWanted is mission F's table. B to D hang on the seed, so they have bands: narrow ones for additive jitter, which the
// mission gives; for the others what a thousand seeds give, about half the time.
func burstWanted(j Jitter) []wanted {
	band := func(row string, least, most int, from, to float64) wanted {
		return wanted{row: row, rejections: [2]int{least, most}, retries: [2]int{least, most}, total: [2]float64{from, to}}
	}
	w := []wanted{
		exactly("A", 25, 0, 25, 0.12, 0), band("B", 72, 84, 16, 19), band("C", 72, 84, 16, 19), band("D", 65, 73, 16, 20),
		exactly("E", 0, 0, 0, 7.12, 6.12), exactly("F", 0, 0, 0, 7.12, 0.37), exactly("G", 0, 0, 0, 5.72, 4.92),
		exactly("H", 0, 0, 0, 5.72, 0.32), exactly("I", 2, 2, 0, 5.12, 0.29),
	}
	if j != Additive {
		w[1], w[2], w[3] = band("B", 65, 100, 5, 12), band("C", 65, 100, 5, 12), band("D", 65, 100, 5, 12)
	}
	return w
}

func runAgentBurst(o Options) (*Report, error) {
	r := &Report{Name: "agent-burst", Seed: o.Seed}
	r.Table.Header = []string{"row", "client", "429s", "retries", "failed", "total s", "critical s"}
	chart := Chart{Title: "calls done", X: "s", Y: "calls"}
	want := burstWanted(o.Jitter)
	var rows []AgentRow
	for i, b := range burstRows {
		a, err := medianBurst(b.row, b.client, o)
		if err != nil {
			return nil, err
		}
		row := a.row(b.row, b.what)
		row.LongestNormalWait = nil // in this table everybody waits for the same burst
		rows = append(rows, row)
		r.Checks = append(r.Checks, want[i].check(row))
		r.Table.Lines = append(r.Table.Lines, row.line())
		chart.Lines = append(chart.Lines, Line{b.row + " " + b.what, a.finished})
		o.progress(i+1, len(burstRows))
	}
	r.Rows, r.Charts = rows, []Chart{chart}
	r.Notes = burstNotes(o.Jitter)
	return r, nil
}

// burstRuns is how often a row is run that hangs on chance. One run in thirty is done before the last doubling of the delay,
// in half the time, and would give another picture.
const burstRuns = 21

// medianBurst gives the run of a row whose total is the median of its runs; the only one, where nothing is random.
func medianBurst(row string, c client, o Options) (*agents, error) {
	runs := 1
	if c.retry && c.rate == 0 {
		runs = burstRuns
	}
	var all []*agents
	for n := range runs {
		a, err := newAgents(c, o, fmt.Sprintf("agent-burst %s %d", row, n))
		if err != nil {
			return nil, err
		}
		for n := range burstCalls {
			class := normal
			if criticalCalls[n] {
				class = critical
			}
			a.arrive(0, class)
		}
		a.clock.Drain()
		all = append(all, a)
	}
	slices.SortStableFunc(all, func(a, b *agents) int { return cmp.Compare(a.clock.Now(), b.clock.Now()) })
	return all[runs/2], nil
}

func (r AgentRow) line() []string {
	n := strconv.Itoa
	return []string{r.Row, r.Client, n(r.Rejections), n(r.Retries), n(r.Failed), text(r.TotalS), text(r.CriticalS)}
}

func burstNotes(j Jitter) []string {
	notes := []string{
		fmt.Sprintf("B to D hang on chance: each is the median by total of %d runs, all from the seed.", burstRuns),
		"A cap on calls in flight is no cap on their rate: C and D are rejected about as often as B.",
		"A client bucket takes 429s to zero, and priority costs no throughput. A little too fast (I) beats a little too slow (E).",
	}
	if j != Additive {
		notes = append(notes, "With "+j.String()+" jitter B to D take about half as long as with additive: the calls come back less together.")
	}
	return notes
}
