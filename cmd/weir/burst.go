// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/internal/mock"
	"github.com/weirproxy/weir/policy"
)

// An answer is what one request of the burst got.
type answer struct {
	tenant string
	status int
	why    string // who refused it: tier and dimension, or the reason; empty: the provider
}

var demoTenants = []string{"acme", "globex", "initech"}

// tenantOf gives who sends request i of n: acme, which runs away, sends three fifths of all, and first.
func tenantOf(i, n int) string {
	switch {
	case i < n*3/5:
		return "acme"
	case i < n*17/20:
		return "globex"
	}
	return "initech"
}

// burst sends n requests at once, to both providers in turn, and gives the answers. base is where a provider is reached.
func burst(ctx context.Context, n int, base func(provider string) string) []answer {
	client := &http.Client{Timeout: time.Minute}
	var written atomic.Int64
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { written.Add(1) }})
	defer client.CloseIdleConnections()
	answers := make(chan answer, n)
	var all sync.WaitGroup
	for i := range n {
		if i > 0 && tenantOf(i, n) != tenantOf(i-1, n) { // each comes while those before are under way, also where the machine is slow
			for end := time.Now().Add(3 * time.Second); written.Load() < int64(i) && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(25 * time.Millisecond)
		}
		all.Go(func() {
			if a, err := askOnce(ctx, client, base, tenantOf(i, n), i); err == nil {
				answers <- a
			}
		})
	}
	all.Wait()
	close(answers)
	var list []answer
	for a := range answers {
		list = append(list, a)
	}
	return list
}

func askOnce(ctx context.Context, client *http.Client, base func(string) string, tenant string, i int) (answer, error) {
	url, model := base("openai")+"/v1/chat/completions", "gpt-4o-mini"
	if i%2 == 1 {
		url, model = base("anthropic")+"/v1/messages", "claude-sonnet-4-5"
	}
	body := fmt.Sprintf(`{"model":"%s","max_tokens":200,"messages":[{"role":"user","content":"Agent %d of %s asks: %s"}]}`,
		model, i, tenant, strings.Repeat("what is the weather in Lisbon, and should I take an umbrella? ", 4))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
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

// A tally is what the requests of one tenant got.
type tally struct {
	asked, admitted, rejected int // rejected: by the provider
	refused                   map[string]int
}

func count(answers []answer, tenant string) tally {
	t := tally{refused: map[string]int{}}
	for _, a := range answers {
		if a.tenant != tenant {
			continue
		}
		t.asked++
		switch {
		case a.status == http.StatusOK:
			t.admitted++
		case a.why == "":
			t.rejected++
		default:
			t.refused[a.why]++
		}
	}
	return t
}

// report is what the demo prints: who got what, without weir and with it.
func report(without, with []answer) string {
	var b strings.Builder
	b.WriteString("                       without weir          with weir\n")
	fmt.Fprintf(&b, "%-10s %8s   %8s %8s   %8s %8s   %s\n", "tenant", "asked", "answered", "429", "answered", "429", "refused by weir")
	var rejected [2]int
	for _, tenant := range demoTenants {
		o, w := count(without, tenant), count(with, tenant)
		fmt.Fprintf(&b, "%-10s %8d   %8d %8d   %8d %8d   %s\n", tenant, w.asked, o.admitted, o.rejected, w.admitted, w.rejected, list(w.refused))
		rejected[0] += o.rejected
		rejected[1] += w.rejected
	}
	calm := count(without, "initech")
	fmt.Fprintf(&b, "\nWithout weir the provider answered %d requests with a 429, and the tenant that ran away left initech %d of its %d.\n",
		rejected[0], calm.admitted, calm.asked)
	fmt.Fprintf(&b, "With weir it answered %d with a 429: acme is held to its own limit, and initech got %d of %d.\n",
		rejected[1], count(with, "initech").admitted, calm.asked)
	return b.String()
}

// usage says what reached the provider against each limit.
func usage(provider *mock.Server, spec *policy.Spec) string {
	var b strings.Builder
	b.WriteString("What reached the provider, as it counted, against each limit for any minute:\n")
	events := provider.Events()
	for _, l := range demoLimits(spec) {
		used := l.used(events)
		fmt.Fprintf(&b, "  %-20s %s %6d of %6d %s\n", l.name, bar(used, l.limit), used, l.limit, l.unit)
	}
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

// bar draws used against a limit.
func bar(used, limit int64) string {
	const width = 24
	n := int(min(used*width/limit, width))
	return strings.Repeat("█", n) + strings.Repeat("░", width-n)
}
