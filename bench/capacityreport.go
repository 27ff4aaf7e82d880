// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// The fleet that the model is for.
const (
	manyEnvoys = 10_000
	manyUsers  = 1_000_000
	usersEach  = manyUsers / manyEnvoys
)

func (r *report) tierCosts(peers []*peer, costs [][]float64) {
	r.table("A request in Envoy, by tiers", "Processor time of the Envoy process alone, chats of 2 KB, 32 connections; median of the rounds, least and most. The first tier is the provider's (requests and tokens), each further one has a token limit.",
		"limits", "CPU µs a request", "least to most", "over plain Envoy")
	var x, y []float64
	for k, p := range peers {
		m := median(costs[k])
		r.row(p.name, fmt.Sprintf("%.0f", m), fmt.Sprintf("%.0f to %.0f", slices.Min(costs[k]), slices.Max(costs[k])), fmt.Sprintf("%.0f", m-median(costs[0])))
		if k > 0 {
			x, y = append(x, float64(k)), append(y, m-median(costs[0]))
		}
	}
	a, b, worst := line(x, y)
	fmt.Fprintf(r, "\nFitted: weir adds %.0f + %.1f × tiers µs of processor time to a request (farthest point %.0f µs off). One core of such a machine spends all of its time on weir's part at %.0f requests a second with 3 tiers.\n", a, b, worst, 1e6/(a+3*b))
}

func (r *report) keyCosts(users []float64, memory map[string][]int64) {
	head := []string{"process"}
	for _, u := range users {
		head = append(head, fmt.Sprintf("%.0f users, MiB", u))
	}
	r.table("A user's record", "Memory of the process after as many different users, of 64 tenants, have made one call each, with a token limit for each user and `slots: {user: 262_144}`; at first 2,000 calls of one user.", append(head, "bytes a user, fitted", "farthest point off")...)
	var fitted []string
	for _, name := range []string{"node Envoy", "node control plane", "fleet Envoy", "fleet control plane"} {
		cells, y := []string{"scope " + name}, []float64(nil)
		for _, m := range memory[name] {
			cells, y = append(cells, fmt.Sprintf("%.1f", float64(m)/(1<<20))), append(y, float64(m))
		}
		_, slope, worst := line(users, y)
		r.row(append(cells, fmt.Sprintf("%.0f", slope), fmt.Sprintf("%.1f MiB", worst/(1<<20)))...)
		fitted = append(fitted, fmt.Sprintf("scope %s: %.0f MiB for %d users, %.0f MiB for %d", name, slope*usersEach/(1<<20), usersEach, slope*manyUsers/(1<<20), manyUsers))
	}
	fmt.Fprintf(r, "\nExtrapolated, beyond what the process takes anyway: %s.\n", strings.Join(fitted, "; "))
}

func (r *report) fleetCosts(runs []fleetRun) {
	r.table("The control plane of a fleet", "`weir bench fleet --nodes N --tenants T --steady 10s --cuts 1`: each Envoy asks for more than its share of a provider's tokens and requests all the time, and for T tenants of its own.",
		"Envoys", "tenants each", "cores", "memory MiB", "reports/s", "pushed KB/s", "a cut in force, p50 ms", "p99 ms", "Envoys later than 15 s")
	for _, f := range runs {
		r.row(fmt.Sprint(f.nodes), fmt.Sprint(f.tenants), fmt.Sprintf("%.2f", f.cores), fmt.Sprintf("%.0f", f.memory), fmt.Sprintf("%.0f", f.reports), fmt.Sprintf("%.0f", f.pushed/1000),
			fmt.Sprintf("%.0f", f.cutP50), fmt.Sprintf("%.0f", f.cutP99), fmt.Sprintf("%.0f", f.notInTime))
	}
	one := func(f fleetRun) bool { return f.tenants == 1 }
	least := func(f fleetRun) bool { return f.nodes == runs[0].nodes }
	nodes, tenants := func(f fleetRun) float64 { return float64(f.nodes) }, func(f fleetRun) float64 { return float64(f.nodes * f.tenants) }
	r.WriteString("\n")
	for _, what := range []struct {
		name, format string
		of           func(fleetRun) float64
	}{
		{"cores", "%.4g", func(f fleetRun) float64 { return f.cores }},
		{"MiB of memory", "%.4g", func(f fleetRun) float64 { return f.memory }},
		{"KB pushed a second", "%.4g", func(f fleetRun) float64 { return f.pushed / 1000 }},
	} {
		a, byNode, worst := line(column(runs, one, nodes), column(runs, one, what.of))
		_, byKey, worstKey := line(column(runs, least, tenants), column(runs, least, what.of))
		f := strings.ReplaceAll("Fitted: F + F × Envoys + F × (tenants − 1) × Envoys "+what.name+" (farthest points F and F off). Extrapolated to %d Envoys: F with one tenant each, F with %d tenants or users each that are busy all the time.\n\n", "F", what.format)
		few := a + byNode*manyEnvoys
		fmt.Fprintf(r, f, a, byNode, byKey, worst, worstKey, manyEnvoys, few, few+byKey*(usersEach-1)*manyEnvoys, usersEach)
	}
}
