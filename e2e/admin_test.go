// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"
)

// The switch and grants reach a running Envoy within a second, by the words that people type, and what was counted before stays.
func TestEnforceAndGrantOnEnvoy(t *testing.T) {
	t.Parallel()
	s := newSplit(t, tinyPolicy(1000)+"fleet: {scope: node}\n") // what an Envoy holds by itself shows a change at once
	tokens := writeFile(t, "tokens", "node e2e "+e2eNodeToken+"\nadmin alice "+strings.ReplaceAll(e2eNodeToken, "node", "boss")+"\n")
	s.serve = start(t, "serve", "--policy", s.policy, "--xds", s.xds, "--status", s.status, "--listen", "127.0.0.1:0",
		"--token-file", tokens, "--store", "bolt:"+t.TempDir()+"/store")
	s.serve.find(`^control plane: xDS on (\S+),`)
	s.startEnvoy("ads", func(string) string {
		return run(t, "bootstrap", "--policy", s.policy, "--node", "e2e", "--xds", s.xds, "--wasm", s.wasm, "--control", s.status, "--token-file", tokens)
	})
	say := func(args ...string) {
		t.Helper()
		if out := run(t, append(args, "--control", s.status, "--token-file", tokens)...); strings.Contains(out, "no store") {
			t.Errorf("%v: %s", args, out)
		}
	}
	// within waits until a call is answered with a status, and says how long that took.
	within := func(tenant string, output, status int) {
		t.Helper()
		begin := time.Now()
		eventually(t, 10*time.Second, func() (bool, string) {
			return send(t, s.proxy, call{tenant: tenant, output: output})[status] == 1, "never"
		})
		if took := time.Since(begin); took > 3*time.Second { // a second, on a machine that has nothing else to do
			t.Errorf("%d for %s took %v", status, tenant, took)
		}
	}
	within("acme", 900, 200)
	within("acme", 900, 429)
	say("enforce", "shadow")
	within("acme", 900, 200)
	say("enforce", "off")
	within("acme", 900, 200)
	say("enforce", "on")
	within("acme", 900, 429)
	within("rich", 5000, 413)
	say("grant", "rich", "+10k", "--for", "1h")
	within("rich", 5000, 200)
	within("other", 5000, 413)
	say("grant", "rich", "--end")
	within("rich", 5000, 413)
}
