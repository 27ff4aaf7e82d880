// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane"
	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/xds"
)

// One frame of a running control plane, in words and as JSON, and what is out of order in it.
func TestTop(t *testing.T) {
	addr, tokens := serveFor(t, adminPolicy)
	if code, _, errs := weir(t, "", "enforce", "off", "--control", addr, "--token-file", tokens); code != 0 {
		t.Fatal(errs)
	}
	code, out, errs := weir(t, "", "top", "--once", "--control", addr, "--token-file", tokens)
	for _, want := range []string{"weir ready", "mode off", "enforce is off: nothing is refused", "No Envoy is connected"} {
		if !strings.Contains(out, want) || code != 0 {
			t.Errorf("no %q in %d\n%s%s", want, code, out, errs)
		}
	}
	if code, out, _ := weir(t, "", "top", "--json", "--control", addr, "--token-file", tokens); code != 0 || !strings.HasPrefix(out, `{"ready":true,`) || strings.Count(out, "\n") != 1 {
		t.Errorf("%d %s", code, out)
	}
	if code, _, errs := weir(t, "", "top", "--control", "127.0.0.1:1"); code != 1 || !strings.Contains(errs, "no control plane answers") {
		t.Errorf("%d %s", code, errs)
	}
}

// Limits come the fullest first, with what was denied since the last frame.
func TestTopFrame(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	st := &controlplane.Status{
		Switch: controlplane.Switch{Enforce: "on"}, Problem: &controlplane.FileProblem{Message: "policy.yaml:3:1: wrong"},
		Grants: []controlplane.Grant{{Tenant: "acme", Limit: "tpm", Add: 500, Until: now.Add(time.Minute)}},
		Nodes:  []xds.Status{{ID: "egress-1", Policy: "abc", Since: now.Add(-time.Hour), Problem: "it has another filter"}},
		Fleet: fleet.Status{Total: 3, Quotas: []fleet.Quota{
			{Quota: "low", Dimension: "rpm", Kind: "shares", Limit: 100, Policy: 100, Holders: []fleet.Holder{{Demand: 10}, {Demand: 15}}},
			{Quota: "high", Dimension: "tpm", Kind: "shares", Limit: 1000, Policy: 2000, Denied: 5, Queued: 2, Holders: []fleet.Holder{{Demand: 900}}},
			{Quota: "stock", Dimension: "tpd", Kind: "stock", Limit: 100, Granted: 50},
		}},
	}
	v := topView{rows: 2}
	first := v.frame(st, now)
	st.Fleet.Quotas[1].Denied = 9
	second := v.frame(st, now.Add(2*time.Second))
	for _, row := range [][2]string{
		{first, "not ready"}, {first, "policy.yaml:3:1: wrong"}, {first, "grant: acme has 500 more tpm for 1m0s"}, {first, "abc (it has another filter)"},
		{first, "high   ##################..  tpm            1000    2000     900   90%       5         -       2\nstock"}, {first, "and 1 more"},
		{second, "   90%       9       2.0       2"},
	} {
		if !strings.Contains(row[0], row[1]) {
			t.Errorf("no %q in\n%s", row[1], row[0])
		}
	}
	if strings.Contains(first, "low") || strings.Contains(first, "\x1b") {
		t.Errorf("%q", first)
	}
}
