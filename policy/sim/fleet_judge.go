// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"

	"github.com/weirproxy/weir/policy/fleet"
)

// A fleetJudge watches a run: what was admitted beside what an ideal bucket would have, and the most that was ever held.
type fleetJudge struct {
	w     *fleetWorld
	exact fleetExact

	admitted, ideal int64 // since warm
	maxSum          float64
	jain, spans     float64
	nextFair        int64
	sum, goodput    []Point // over time
	spanA, spanI    int64
}

// A fleetExact is the quota itself, charged with each admission: a bucket that must never owe anything, and the last window.
type fleetExact struct {
	bucket, owed float64
	lately       []spent
	window, most int64
}

type fleetResult struct {
	goodput, maxSum, owed, maxWindow, jain, messages float64
	sum, goodputs                                    []Point
}

func newFleetJudge(w *fleetWorld) fleetJudge {
	return fleetJudge{w: w, exact: fleetExact{bucket: float64(w.quota.Burst)}, nextFair: w.clock.Now() + int64(fairSpan)}
}

func (j *fleetJudge) tick(offered, used, ideal int64) {
	w, now := j.w, j.w.clock.Now()
	j.exact.add(now, used, &w.quota)
	sum := float64(w.held()) / float64(w.quota.Limit)
	j.maxSum = max(j.maxSum, sum)
	warm := now >= w.warm*int64(time.Second)
	if warm {
		j.admitted, j.ideal = j.admitted+used, j.ideal+ideal
	}
	j.spanA, j.spanI = j.spanA+used, j.spanI+ideal
	if tick := now / int64(fleetTick); tick%10 == 0 {
		w.addFair(now)
	}
	if second := int64(time.Second); now%second == 0 {
		j.sum = append(j.sum, Point{float64(now / second), sum})
	}
	if now >= j.nextFair {
		j.endSpan(now, warm)
	}
}

// held is the most that all nodes together may come to: with windows the sum of max(cap, what the ring remembers) and what
// nodes that are gone spent in the last window; else the sum of the rates.
func (w *fleetWorld) held() (units int64) {
	since := w.clock.Now() - w.quota.Window
	for _, n := range w.nodes {
		switch {
		case !w.windowed && n.up:
			units += n.share.Terms(w.local(n)).Rate
		case w.windowed:
			n.dead, n.mine = after(n.dead, since), after(n.mine, since)
			units += total(n.dead)
			if n.up {
				units += n.share.Held(w.local(n))
			} else {
				units += total(n.mine)
			}
		}
	}
	return units
}

func after(l []spent, since int64) []spent {
	for len(l) > 0 && l[0].at <= since {
		l = l[1:]
	}
	return l
}

func total(l []spent) (units int64) {
	for _, s := range l {
		units += s.units
	}
	return units
}

// addFair adds to what each node should have had: its max-min share of the limit.
func (w *fleetWorld) addFair(now int64) {
	for i, n := range w.nodes {
		w.wants[i].Demand = 0
		if n.up {
			w.wants[i].Demand = int64(n.demand)
		}
	}
	w.filler.Fill(fleetRate, w.wants, w.fair)
	for i, n := range w.nodes {
		n.fair += w.fair[i] / 10
	}
}

// endSpan adds Jain's index of what nodes got of their fair shares.
func (j *fleetJudge) endSpan(now int64, warm bool) {
	s1, s2, k := 0.0, 0.0, 0.0
	for _, n := range j.w.nodes {
		if n.fair > 0 {
			x := min(float64(n.admitted)/float64(n.fair), 1)
			s1, s2, k = s1+x, s2+x*x, k+1
		}
		n.fair, n.admitted = 0, 0
	}
	if warm && s2 > 0 {
		j.jain, j.spans = j.jain+s1*s1/(k*s2), j.spans+1
	}
	if j.spanI > 0 {
		j.goodput = append(j.goodput, Point{float64(now) / 1e9, float64(j.spanA) / float64(j.spanI)})
	}
	j.spanA, j.spanI = 0, 0
	j.nextFair += int64(fairSpan)
}

func (e *fleetExact) add(now, used int64, q *fleet.Quota) {
	rate := float64(q.Limit) / float64(q.Window) * (1 + 2e-4) // nodes' clocks may be fast by so much
	e.bucket = math.Min(float64(q.Burst), e.bucket+rate*float64(fleetTick)) - float64(used)
	e.owed = max(e.owed, -e.bucket)
	for len(e.lately) > 0 && e.lately[0].at <= now-q.Window {
		e.window -= e.lately[0].units
		e.lately = e.lately[1:]
	}
	if used > 0 {
		e.lately = append(e.lately, spent{now, used})
		e.window += used
	}
	e.most = max(e.most, e.window)
}

func (j *fleetJudge) result() fleetResult {
	w := j.w
	return fleetResult{
		goodput: float64(j.admitted) / float64(max(j.ideal, 1)), maxSum: j.maxSum, owed: j.exact.owed,
		maxWindow: float64(j.exact.most) / float64(w.quota.Limit), jain: j.jain / max(j.spans, 1),
		messages: float64(w.sent) / float64(w.seconds) / float64(len(w.nodes)), sum: j.sum, goodputs: j.goodput,
	}
}
