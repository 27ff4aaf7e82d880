// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"
)

const pushTitle = "Pushes of shares"

func (r *report) pushCosts(runs *[2]pushRun, bytes int) {
	r.table(pushTitle, fmt.Sprintf("One Envoy with two workers and %d users, each with a share of a token limit of its own; %d requests a second at random times over %d connections, chats of 2 KB, in turn without pushes and with %d a second of a document with a new grant for every user (the last had %d KB). Pushed: what the control plane has sent; taken: Envoy's count of configurations of shares; in force: grants by user that reports have confirmed. Ratios are with ÷ without, with the least and the greatest of %d parts of the run.",
		pushUsers, pushLoad, pushClients, pushRate, bytes>>10, batches),
		"", "requests", "p50 µs", "p99 µs", "CPU of workers", "of Envoy's other threads", "pushed/s", "taken/s", "in force/s")
	for i, name := range []string{"without pushes", fmt.Sprintf("%d pushes a second", pushRate)} {
		run, n := &runs[i], 0
		for _, s := range run.all {
			n += len(s)
		}
		perSecond := func(n float64) string { return fmt.Sprintf("%.1f", n/run.took.Seconds()) }
		percent := func(d time.Duration) string { return fmt.Sprintf("%.1f %%", 100*d.Seconds()/run.took.Seconds()) }
		r.row(name, fmt.Sprint(n), us(quantile(run.all, 0.5)), us(quantile(run.all, 0.99)), percent(run.cpu[0]), percent(run.cpu[1]), perSecond(float64(run.pushed)), perSecond(float64(run.reloads)), perSecond(float64(run.told)/pushUsers))
	}
	fmt.Fprintf(r, "\n")
	for _, q := range []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		ratio := func(with, without samples) float64 {
			return float64(quantile(with, q.q)) / float64(quantile(without, q.q))
		}
		var parts []float64
		for i := range batches {
			parts = append(parts, ratio(runs[1].all.batch(i), runs[0].all.batch(i)))
		}
		fmt.Fprintf(r, "%s with pushes ÷ without: %s.\n\n", q.name, spread(ratio(runs[1].all, runs[0].all), parts))
	}
}
