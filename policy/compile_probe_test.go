// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

// What a policy does not know is tried from below: with shares by a control plane, up to a limit that nobody will meet; without one it
// stays low.
func TestProbedLimits(t *testing.T) {
	for _, shares := range []bool{false, true} {
		s := &Spec{APIVersion: APIVersion, Fleet: FleetSpec{Shares: shares}, Providers: map[string]ProviderSpec{
			"openai": {Upstream: "http://x", Models: map[string]*LimitSpec{"*": {Probe: true, RPM: new(Count(500))}, "in": {Probe: true, ITPM: new(Count(9))}}},
		}}
		p, err := Compile(s)
		if err != nil {
			t.Fatal(err)
		}
		rest, _ := p.Providers[0].Models.Lookup("x")
		in, _ := p.Providers[0].Models.Lookup("in")
		first, probed := rest.Limit.Probed(TPM)
		if _, rpm := rest.Limit.Probed(RPM); rpm || probed != shares || len(rest.Limit.Meters) != 2 || len(in.Limit.Meters) != 2 {
			t.Errorf("shares %v: %+v and %+v", shares, rest.Limit, in.Limit)
		}
		for _, m := range rest.Limit.Meters {
			switch tokens := m.Limit(); {
			case m.Dimension == RPM && tokens != 500, m.Dimension == TPM && !shares && tokens != 20_000, m.Dimension == TPM && shares && (tokens <= first || first != 20_000):
				t.Errorf("shares %v: %v of %v, at first %d", shares, tokens, m.Dimension, first)
			}
		}
	}
	for want, change := range map[string]func(s *Spec){
		"providers.p.models.m.probe: what a provider gives is found for all Envoys together (write scope: fleet)": func(s *Spec) { s.Providers["p"].Models["m"].Scope = "node" },
		"limits.tenant.default.probe: only limits of a provider's models are found by trying (leave it out)": func(s *Spec) {
			s.Limits.Tenant = map[string]*LimitSpec{"default": {Probe: true, RPM: new(Count(1))}}
		},
		"providers.p.adapt: without its answers nothing can be found (leave it out)": func(s *Spec) {
			p := s.Providers["p"]
			p.Adapt.Off = true
			s.Providers["p"] = p
		},
	} {
		s := &Spec{APIVersion: APIVersion, Providers: map[string]ProviderSpec{"p": {Upstream: "http://x", Models: map[string]*LimitSpec{"m": {Probe: true}}}}}
		change(s)
		if _, err := Compile(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
