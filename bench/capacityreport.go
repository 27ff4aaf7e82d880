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

func (r *report) tierCosts(peers []*peer, loads [][]load) {
	r.table("A request in Envoy, by tiers", "Processor time of the Envoy process alone, chats of 2 KB, 32 connections; median of the rounds, least and most. The first tier is the provider's (requests and tokens), each further one has a token limit.",
		"limits", "CPU µs a request", "least to most", "over plain Envoy")
	var x, y []float64
	plain := median(figures(loads[0], load.ofCPU))
	for k, p := range peers {
		costs := figures(loads[k], load.ofCPU)
		over := median(costs) - plain
		r.row(p.name, fmt.Sprintf("%.0f", median(costs)), fmt.Sprintf("%.0f to %.0f", slices.Min(costs), slices.Max(costs)), fmt.Sprintf("%.0f", over))
		if k > 0 {
			x, y = append(x, float64(k)), append(y, over)
		}
	}
	a, b, worst := line(x, y)
	fmt.Fprintf(r, "\nFitted: weir adds %.0f + %.1f × tiers µs of processor time to a request (farthest point %.0f µs off). One core of such a machine spends all of its time on weir's part at %.0f requests a second with 3 tiers.\n", a, b, worst, 1e6/(a+3*b))
}

func (r *report) keyCosts(runs []keyRun) {
	r.table("A user's record", "Memory of the process before and after four steps in which as many new users, of 64 tenants, have made one call each over 16 connections, with a token limit for each user and `slots: {user: 262_144}`; before the first step one user has made as many calls as a step has.",
		"process", "users in a step", "MiB before", "after each step", "bytes a user, fitted", "farthest point off MiB")
	var fitted []string
	for _, run := range runs {
		for i, memory := range [][]float64{run.envoy, run.control} {
			what := []string{"Envoy", "control plane"}[i]
			var after []string
			for _, m := range memory[1:] {
				after = append(after, fmt.Sprintf("%.1f", m/(1<<20)))
			}
			_, slope, worst := line(run.users, memory)
			r.row("scope "+run.scope+", "+what, fmt.Sprintf("%.0f", run.users[1]), fmt.Sprintf("%.1f", memory[0]/(1<<20)), strings.Join(after, ", "), fmt.Sprintf("%.0f", slope), fmt.Sprintf("%.1f", worst/(1<<20)))
			fitted = append(fitted, fmt.Sprintf("scope %s, %s: %.1f MiB for %d users, %.0f MiB for %d", run.scope, what, slope*usersEach/(1<<20), usersEach, slope*manyUsers/(1<<20), manyUsers))
		}
	}
	fmt.Fprintf(r, "\nExtrapolated, beyond what the process takes anyway: %s.\n\n", strings.Join(fitted, "; "))
	for _, run := range runs {
		fmt.Fprintf(r, "Scope %s: %.0f calls a second of one user, %.0f of users that are new at this Envoy.\n\n", run.scope, run.first, run.perSecond)
	}
}

func (r *report) fleetCosts(runs []fleetRun) {
	r.table("The control plane of a fleet", "`weir bench fleet --nodes N --tenants T --steady 8s --cuts 1`: each Envoy asks for more than its share of a provider's tokens and requests all the time, and for T tenants of its own.",
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
		name string
		of   func(fleetRun) float64
	}{
		{"cores", func(f fleetRun) float64 { return f.cores }},
		{"MiB of memory", func(f fleetRun) float64 { return f.memory }},
		{"KB pushed a second", func(f fleetRun) float64 { return f.pushed / 1000 }},
	} {
		a, byNode, worst := line(column(runs, one, nodes), column(runs, one, what.of))
		_, byKey, worstKey := line(column(runs, least, tenants), column(runs, least, what.of))
		f := strings.ReplaceAll("Fitted: § + § × Envoys + § × (tenants − 1) × Envoys "+what.name+" (farthest points § and § off). Extrapolated to %d Envoys: § with one tenant each, § with %d tenants or users each that are busy all the time.\n\n", "§", "%.4g")
		few := a + byNode*manyEnvoys
		fmt.Fprintf(r, f, a, byNode, byKey, worst, worstKey, manyEnvoys, few, few+byKey*(usersEach-1)*manyEnvoys, usersEach)
	}
}
