// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A scenario is one call of a client library, by a tenant of its own.
type scenario struct {
	name   string   // as docs/callers.md calls it
	limit  string   // of the tenant
	used   bool     // the tenant has just made a call
	held   bool     // the tenant has a call in flight that does not end
	ask    asked    // beside headers that all have
	only   []string // clients it is for; all if empty
	reason string   // of each of weir's refusals
	most   int      // attempts, whatever the client
	deaf   bool     // it does not wait as long as it was told
	envoys int      // attempts that Envoy makes of a call that weir refuses in the end

	decision string // that answers name
}

var scenarios = []scenario{
	{name: "a call", most: 1},
	{name: "a stream", ask: asked{Stream: true}, most: 1},
	{name: "a stream with usage", ask: asked{Stream: true, Usage: true}, most: 1},
	{name: "refused for 2 s", limit: "{rpm: 30, window: 2s, burst: 100%}", used: true, reason: "limit_exceeded", most: 2},
	{name: "a stream refused for 2 s", limit: "{rpm: 30, window: 2s, burst: 100%}", used: true, ask: asked{Stream: true}, reason: "limit_exceeded", most: 2},
	{name: "the same of the Responses API", limit: "{rpm: 30, window: 2s, burst: 100%}", used: true, only: []string{"openai-python", "openai-node", "openai-go"},
		ask: asked{Stream: true, Responses: true}, reason: "limit_exceeded", most: 2},
	{name: "waits 2 s in weir", limit: "{rpm: 30, window: 2s, burst: 100%}", used: true, ask: asked{Class: "patient"}, most: 1},
	{name: "would wait 4 s in weir, has a timeout of 1 s", limit: "{rpm: 15, window: 4s, burst: 100%}", used: true,
		ask: asked{Class: "patient", Timeout: 1}, reason: "queue_timeout", most: 2},
	{name: "refused for 1 s at every attempt", limit: "{in_flight: 1}", held: true, reason: "limit_exceeded", most: 3},
	{name: "the same, with num_retries=2", limit: "{in_flight: 1}", held: true, only: []string{"litellm"}, ask: asked{NumRetries: 2}, reason: "limit_exceeded", most: 5, deaf: true},
	{name: "refused for an hour", limit: "{rph: 1, burst: 100%}", used: true, reason: "limit_exceeded", most: 1},
	{name: "the day's quota is used up", limit: "{rpd: 1, burst: 100%}", used: true, reason: "quota_exhausted", most: 1},
	{name: "the same, with num_retries=2", limit: "{rpd: 1, burst: 100%}", used: true, only: []string{"litellm"}, ask: asked{NumRetries: 2}, reason: "quota_exhausted", most: 3, deaf: true},
	{name: "served by a smaller model", ask: asked{Model: "scarce", Class: "frugal"}, most: 1, decision: "degrade"},
	{name: "a stream served by a smaller model", ask: asked{Model: "scarce", Class: "frugal", Stream: true}, most: 1, decision: "degrade"},
	{name: "larger than the limit", limit: "{tpm: 20}", reason: "request_too_large", most: 1},
	{name: "the provider fails, 1 retry left in the tree", ask: asked{Tree: "t", Status: 503}, reason: "retry_budget_exhausted", most: 1, envoys: 2},
}

// clientNames in the order of the table's columns.
var clientNames = []string{"openai-python", "openai-node", "openai-go", "langchain-openai", "litellm", "anthropic-python"}

func clientPolicy() string {
	p := `
apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://MOCK", stream: {include_usage: add}, models: {scarce: {tpm: 5}, "*": {rpm: 1_000_000}}}
  anthropic: {upstream: "http://MOCK", models: {scarce: {tpm: 5}, "*": {rpm: 1_000_000}}}
degrade: {scarce: gpt-4o-mini}
classes:
  interactive: {priority: 2}
  patient: {priority: 1, on_limit: queue, wait: 20s}
  frugal: {priority: 1, on_limit: degrade}
limits:
  tree:
    default: {retries: 1, ttl: 10m}
  tenant:
    default: {rpm: 1_000_000}
`
	for _, client := range clientNames {
		for i, sc := range scenarios {
			if sc.limit != "" {
				p += fmt.Sprintf("    %s: %s\n", tenantOf(client, i), sc.limit)
			}
		}
	}
	return p
}

func tenantOf(client string, scenario int) string { return client + "-" + strconv.Itoa(scenario) }

// Client libraries as people use them talk through weir in a real Envoy to the mock provider. Each gets what it asks for, or the
// error that its documentation promises, which says who refused; none comes back sooner than it was told or more often than it
// should; and what each does is what docs/callers.md says. It runs alone, for the libraries take long to load.
func TestClients(t *testing.T) {
	commands := clientCommands(t)
	s := startStack(t, clientPolicy())
	drivers := map[string]*driver{}
	for _, name := range clientNames {
		drivers[name] = startDriver(t, name, startTap(t, s.proxy), append(commands[name], "http://TAP")...)
	}
	results := map[string][]result{}
	t.Run("of", func(t *testing.T) {
		for _, name := range clientNames {
			drivers[name].ready(t)
			list := make([]result, len(scenarios))
			results[name] = list
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for i, sc := range scenarios {
					if sc.only == nil || slices.Contains(sc.only, name) {
						list[i] = sc.run(t, s, drivers[name], tenantOf(name, i))
					}
				}
			})
		}
	})
	if len(results) < len(clientNames) {
		return // a driver did not start, and the test has failed
	}
	checkMetrics(t, s, results)
	checkTable(t, results)
}

// A result is what a client did in a scenario.
type result struct {
	said     said
	attempts []attempt
}

// cell says it in a few words.
func (r result) cell() string {
	switch {
	case len(r.attempts) == 0:
		return "–"
	case r.said.OK:
		return fmt.Sprintf("%d: answer", len(r.attempts))
	case r.said.Status == 0:
		return fmt.Sprintf("%d: %s", len(r.attempts), r.said.Error)
	}
	return fmt.Sprintf("%d: %s, %d", len(r.attempts), r.said.Error, r.said.Status)
}

// clientCommands installs the libraries, and says how to start each one's driver.
func clientCommands(t *testing.T) map[string][]string {
	if out, err := exec.Command("sh", "../hack/get-clients.sh", "../.tools").CombinedOutput(); err != nil {
		t.Fatalf("hack/get-clients.sh: %v\n%s", err, out)
	}
	goClient := filepath.Join(t.TempDir(), "openai-go")
	if out, err := exec.Command("go", "build", "-C", "clients/go", "-o", goClient, ".").CombinedOutput(); err != nil {
		t.Fatalf("openai-go: %v\n%s", err, out)
	}
	commands := map[string][]string{
		"openai-node": {"node", "clients/driver.mjs", "../.tools/clients/node"},
		"openai-go":   {goClient},
	}
	for _, name := range []string{"openai-python", "langchain-openai", "litellm", "anthropic-python"} {
		commands[name] = []string{"../.tools/clients/python/bin/python", "-I", "clients/driver.py", name}
	}
	return commands
}

// run has a client make the call.
func (sc *scenario) run(t *testing.T, s *stack, d *driver, tenant string) result {
	before := call{tenant: tenant, output: 1, headers: map[string]string{"x-mock-tag": tenant + "-before"}}
	if sc.used {
		if statuses := send(t, s.proxy, before); statuses[200] != 1 {
			t.Errorf("%s: the call before: %v", sc.name, statuses)
		}
	}
	if sc.held {
		defer s.hold(before)()
	}
	r := result{said: d.call(t, sc.ask, tenant)}
	r.attempts = d.tap.take()
	sc.check(t, r, len(s.mock.events(tenant)), d.client)
	return r
}

// checkTable holds what was seen against the table in the docs.
func checkTable(t *testing.T, results map[string][]result) {
	table := "| " + strings.Join(slices.Concat([]string{""}, clientNames), " | ") + " |\n" + strings.Repeat("|---", 1+len(clientNames)) + "|\n"
	for i, sc := range scenarios {
		table += "| " + sc.name
		for _, name := range clientNames {
			table += " | " + results[name][i].cell()
		}
		table += " |\n"
	}
	docs, err := os.ReadFile("../docs/callers.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), table) {
		t.Errorf("docs/callers.md says something else than this:\n%s", table)
	}
}
