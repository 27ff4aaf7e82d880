// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A report is what docs/benchmarks.md is made of.
type report struct{ strings.Builder }

func (r *report) table(title, note string, head ...string) {
	fmt.Fprintf(r, "\n### %s\n\n", title)
	if note != "" {
		fmt.Fprintf(r, "%s\n\n", note)
	}
	r.row(head...)
	r.row(slices.Repeat([]string{"---"}, len(head))...)
}

func (r *report) row(cells ...string) { fmt.Fprintf(r, "| %s |\n", strings.Join(cells, " | ")) }

func us(d time.Duration) string { return fmt.Sprint(d.Microseconds()) }

// spread is a ratio with the least and the greatest of its parts.
func spread(whole float64, parts []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", whole, slices.Min(parts), slices.Max(parts))
}

func (r *report) latency(title string, peers []*peer, all []samples) {
	r.table("Latency of "+title, "", "peer", "p50 µs", "added p50", "p99 µs", "added p99", "p50 ÷ plain Envoy (spread)")
	base := all[slices.IndexFunc(peers, func(p *peer) bool { return p.name == "plain Envoy" })]
	ratio := func(a, b samples) float64 { return float64(quantile(a, 0.5)) / float64(max(quantile(b, 0.5), 1)) }
	for k, p := range peers {
		var parts []float64
		for i := range batches {
			parts = append(parts, ratio(all[k].batch(i), base.batch(i)))
		}
		p50, p99 := quantile(all[k], 0.5), quantile(all[k], 0.99)
		r.row(p.name, us(p50), us(p50-quantile(all[0], 0.5)), us(p99), us(p99-quantile(all[0], 0.99)), spread(ratio(all[k], base), parts))
	}
}

func median(x []float64) float64 { return slices.Sorted(slices.Values(x))[len(x)/2] }

func (l load) ofCPU() float64 { return l.cpu }

// figures is one of each load.
func figures(loads []load, of func(load) float64) (x []float64) {
	for _, l := range loads {
		x = append(x, of(l))
	}
	return x
}

func (r *report) throughput(peers []*peer, loads [][]load) {
	r.table("Throughput, 32 connections, 2 KB", "Median of the rounds. Processor time and memory are of all of a peer's processes: Envoy, its service and Redis, or its control plane. The client and the provider share the processors with them. The start is that of Envoy or of the gateway, until it takes connections.",
		"peer", "requests/s", "÷ plain Envoy (spread)", "p99 ms", "CPU µs a request", "memory MiB", "start ms")
	rate := func(l load) float64 { return l.perSecond }
	base := figures(loads[slices.IndexFunc(peers, func(p *peer) bool { return p.name == "plain Envoy" })], rate)
	for k, p := range peers {
		rates, parts := figures(loads[k], rate), []float64(nil)
		for i := range rates {
			parts = append(parts, rates[i]/base[i])
		}
		cells := []string{p.name, fmt.Sprintf("%.0f", median(rates)), spread(median(parts), parts),
			fmt.Sprintf("%.1f", median(figures(loads[k], func(l load) float64 { return float64(l.p99.Microseconds()) / 1000 })))}
		if p.parts == nil {
			r.row(append(cells, "", "", "")...)
			continue
		}
		r.row(append(cells, fmt.Sprintf("%.0f", median(figures(loads[k], load.ofCPU))),
			fmt.Sprint(slices.MaxFunc(loads[k], func(a, b load) int { return cmp.Compare(a.memory, b.memory) }).memory>>20), fmt.Sprint(p.parts[0].took.Milliseconds()))...)
	}
}

func (r *report) admission(peers []*peer, all []plan, outcomes []map[string]*outcome) {
	const note = "A limit of 10,000 tokens a minute, calls of about 500, a provider that takes 300 ms. Counted at the provider: tokens that came through in the first second, and in the worst 60 seconds, as shares of the limit. Above 1.00 is too much. Of weir's limits a quarter may come at once, unless the policy's `burst` says otherwise: hence its 0.25."
	head := []string{"peer"}
	for _, p := range all[:4] {
		if len(p.bursts) == 1 {
			head = append(head, p.title+": 1 s", "60 s")
		} else {
			head = append(head, p.title+": 60 s")
		}
	}
	share := func(n int) string { return fmt.Sprintf("%.2f", float64(n)/limit) }
	r.table("Over-admission", note, head...)
	for k, p := range peers {
		cells := []string{p.name}
		for _, pl := range all[:4] {
			o := outcomes[k][pl.name]
			if len(pl.bursts) == 1 {
				cells = append(cells, share(o.second))
			}
			cells = append(cells, share(o.minute))
		}
		r.row(cells...)
	}
	r.table("Under-use", "How much of a limit is used by calls that would take more of it, in a minute; more than 1.00 is over-admission. Who reserves `max_tokens` cannot use the end of a limit that is smaller than one of them.", "peer", all[4].title, all[5].title)
	for k, p := range peers {
		r.row(p.name, share(outcomes[k][all[4].name].total), share(outcomes[k][all[5].name].total))
	}
	r.table("What a denial carries", "", "peer", "status", "Retry-After", "other headers", "body")
	for k, p := range peers {
		a := outcomes[k][all[0].name].refusal
		r.row(p.name, fmt.Sprint(a.status), cmp.Or(a.header.Get("retry-after"), "none"), otherHeaders(a.header), "`"+clip(strings.ReplaceAll(strings.ReplaceAll(a.body, "\n", " "), "|", `\|`), 300)+"`")
	}
}

func clip(s string, n int) string { return s[:min(len(s), n)] }

func otherHeaders(h http.Header) string {
	var names []string
	for name := range h {
		name = strings.ToLower(name)
		if strings.Contains(name, "ratelimit") || strings.HasPrefix(name, "x-weir") || name == "x-should-retry" || name == "retry-after-ms" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return cmp.Or(strings.Join(names, ", "), "none")
}

func (r *report) outages(peers []*peer, outages []*outage, away time.Duration) {
	r.table(fmt.Sprintf("The store is gone for %v", away), "Redis, or weir's control plane, is stopped and started again. Meanwhile three calls a second of a tenant that needs a fifth of its limit, and three of one that has used up its own: where a fixed window ends meanwhile, or a limit refills, some of these are right.",
		"peer", "within the limit: answered, by status (0: none)", "slowest", "used up: share of the limit let through meanwhile", "first of these after", "last wrong or slow answer after the store was back")
	for k, p := range peers {
		o := outages[k]
		var statuses []string
		for s, n := range o.statuses {
			statuses = append(statuses, fmt.Sprintf("%d: %.0f %%", s, 100*float64(n)/float64(o.probes)))
		}
		slices.Sort(statuses)
		first := "none"
		if o.firstOpen > 0 {
			first = o.firstOpen.Round(100 * time.Millisecond).String()
		}
		r.row(p.name, strings.Join(statuses, ", "), fmt.Sprintf("%d ms", o.slowest.Milliseconds()), fmt.Sprintf("%.2f", float64(o.let)/limit), first, fmt.Sprintf("%.1f s", o.recovered.Seconds()))
	}
}

func (r *report) changes(peers []*peer, times [][]time.Duration) {
	r.table("A limit is cut", "From when the file is written until the first refusal on a new connection: weir's policy; the rate limit service's configuration; the listener's file for local_ratelimit. hardcap and LiteLLM read their file when they start.", "peer", "median ms", "least to most ms")
	for k, p := range peers {
		if len(times[k]) == 0 {
			r.row(p.name, "a restart", "")
			continue
		}
		t := slices.Sorted(slices.Values(times[k]))
		r.row(p.name, fmt.Sprint(t[len(t)/2].Milliseconds()), fmt.Sprintf("%d to %d", t[0].Milliseconds(), t[len(t)-1].Milliseconds()))
	}
}

func (r *report) estimates(rows [][]string) {
	r.table("How far estimates miss", "Percent of what the family's own tokenizer counts: mean / median of the error's size / its 95th percentile, over texts of all kinds (`make tokens-report`). hardcap and LiteLLM go by chars/4. Those of weir are before usage that comes back puts them right; o200k and cl100k are counted.",
		"tokenizer", "weir", "chars/4", "bytes/4 + 5")
	for _, f := range rows {
		r.row(f...)
	}
}

// machine says on what it ran, and what else ran there.
func machine() string {
	model, load := "", ""
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(cpu)) {
		if _, m, found := strings.Cut(line, "model name\t: "); found {
			model = strings.TrimSpace(m)
		}
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = strings.Join(strings.Fields(string(b))[:3], " ")
	}
	return fmt.Sprintf("%s, %d processors (%s/%s), load %s", cmp.Or(model, "unknown processor"), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, load)
}
