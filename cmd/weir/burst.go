// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirproxy/weir/internal/mock"
	"github.com/weirproxy/weir/policy"
)

// An answer is what one request of the burst got.
type answer struct {
	tenant string
	status int
	why    string // who refused it: tier and dimension, or the reason
}

var demoTenants = []string{"acme", "globex", "initech"}

// burst sends n requests at once, from all tenants in turn and to both providers, and gives the answers.
func burst(ctx context.Context, proxy string, n int) []answer {
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 0}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	answers := make(chan answer, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			if a, err := askOnce(ctx, client, proxy, demoTenants[i%len(demoTenants)], i); err == nil {
				answers <- a
			}
		})
	}
	close(start)
	all.Wait()
	close(answers)
	var list []answer
	for a := range answers {
		list = append(list, a)
	}
	return list
}

func askOnce(ctx context.Context, client *http.Client, proxy, tenant string, i int) (answer, error) {
	path, model := "/openai/v1/chat/completions", "gpt-4o-mini"
	if i%4 == 3 {
		path, model = "/anthropic/v1/messages", "claude-sonnet-4-5"
	}
	body := fmt.Sprintf(`{"model":"%s","max_tokens":200,"messages":[{"role":"user","content":"Agent %d of %s asks: %s"}]}`,
		model, i, tenant, strings.Repeat("what is the weather in Lisbon, and should I take an umbrella? ", 4))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+proxy+path, bytes.NewBufferString(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("content-type", "application/json")
	r.Header.Set("x-tenant", tenant)
	r.Header.Set("x-mock-tag", tenant)
	resp, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return answer{}, err
	}
	return answer{tenant, resp.StatusCode, whyRefused(resp.Header)}, nil
}

func whyRefused(h http.Header) string {
	switch {
	case h.Get("x-weir-decision") == "":
		return ""
	case h.Get("x-weir-tier") == "":
		return h.Get("x-weir-reason")
	}
	return h.Get("x-weir-tier") + " " + h.Get("x-weir-dimension")
}

// report is what the demo prints: who got what, and what it was measured against.
func report(answers []answer, provider *mock.Server, spec *policy.Spec) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s %8s %9s %8s   %s\n", "tenant", "asked", "admitted", "refused", "refused by")
	for _, tenant := range demoTenants {
		asked, admitted, why := 0, 0, map[string]int{}
		for _, a := range answers {
			switch {
			case a.tenant != tenant:
				continue
			case a.status == http.StatusOK:
				admitted++
			case a.why != "":
				why[a.why]++
			default:
				why[fmt.Sprintf("the provider (%d)", a.status)]++
			}
			asked++
		}
		fmt.Fprintf(&b, "%-10s %8d %9d %8d   %s\n", tenant, asked, admitted, asked-admitted, list(why))
	}
	b.WriteString("\nWhat reached the provider, as it counted, against each limit for any minute.\nA quarter may come at once (│), the rest as the bucket refills.\n")
	events := provider.Events()
	for _, l := range demoLimits(spec) {
		used := l.used(events)
		fmt.Fprintf(&b, "  %-22s %s %6d of %6d %s\n", l.name, bar(used, l.limit), used, l.limit, l.unit)
	}
	total := provider.Stats().Counts
	fmt.Fprintf(&b, "\nThe provider answered %d requests, and %d of them with a 429.\n", total.Admitted+total.Refused, total.Refused)
	return b.String()
}

func list(why map[string]int) string {
	var parts []string
	for w, n := range why {
		parts = append(parts, fmt.Sprintf("%s: %d", w, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// A demoLimit is one limit of the demo's policy.
type demoLimit struct {
	name, unit string
	limit      int64
	matches    func(mock.Event) bool
}

// demoLimits lists the limits a minute of providers and tenants.
func demoLimits(spec *policy.Spec) (limits []demoLimit) {
	add := func(name string, l *policy.LimitSpec, matches func(mock.Event) bool) {
		if l.TPM != nil {
			limits = append(limits, demoLimit{name, "tokens", int64(*l.TPM), matches})
		}
		if l.RPM != nil {
			limits = append(limits, demoLimit{name, "requests", int64(*l.RPM), matches})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Providers)) {
		for pattern, l := range spec.Providers[name].Models {
			prefix := strings.TrimSuffix(pattern, "*")
			add(name+" "+pattern, l, func(e mock.Event) bool { return strings.HasPrefix(e.Model, prefix) })
		}
	}
	for _, name := range demoTenants {
		add("tenant "+name, spec.Limits.Tenant[name], func(e mock.Event) bool { return e.Tag == name })
	}
	return limits
}

func (l demoLimit) used(events []mock.Event) (n int64) {
	for _, e := range events {
		if !l.matches(e) || e.Outcome != mock.Admitted {
			continue
		}
		if l.unit == "requests" {
			n++
		} else {
			n += e.Input + e.Output
		}
	}
	return n
}

// bar draws used against a limit, with a mark at the quarter that may come at once.
func bar(used, limit int64) string {
	const width = 24
	var b strings.Builder
	for i := range int64(width) {
		switch {
		case i == width/4:
			b.WriteString("│")
		case i*limit < used*width:
			b.WriteString("█")
		default:
			b.WriteString("░")
		}
	}
	return b.String()
}
