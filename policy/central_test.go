// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/policy"
)

func centralSpec(shares bool) *policy.Spec {
	return &policy.Spec{
		APIVersion: "weir/v1",
		Providers: map[string]policy.ProviderSpec{"openai": {
			Upstream: "http://x", Models: map[string]*policy.LimitSpec{"*": {RPS: new(policy.Count(2)), Scope: "central"}},
		}},
		Limits: policy.LimitsSpec{
			Tenant:      map[string]*policy.LimitSpec{"default": {TPM: new(policy.Count(100_000)), Scope: "central"}},
			User:        map[string]*policy.LimitSpec{"default": {TPM: new(policy.Count(200_000)), Scope: "node"}},
			Environment: map[string]*policy.EnvironmentSpec{"dev": {Share: policy.Whole / 2}},
			Tree:        map[string]*policy.TreeSpec{"default": {Calls: 3, OnRetriesSpent: "degrade"}},
		},
		Degrade: map[string]*policy.DegradeSpec{"a": {Model: "b"}},
		Fleet:   policy.FleetSpec{Shares: shares, Scope: "central", Floor: policy.Whole / 10, MaxEnvoys: 20},
	}
}

func centralPath(t *testing.T, shares bool) (p policy.Path) {
	c, err := policy.Compile(centralSpec(shares))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := c.Providers[0].Models.Lookup("gpt-4o")
	c.Path(&p, m, &policy.Caller{Environment: "dev", Tenant: "acme", User: "u", Tree: "t"})
	return p
}

// Limits of scope central leave the Envoy's own path where there is a fleet, and only there; a provider's gate stays.
func TestCentralLimitsLeaveThePath(t *testing.T) {
	tiers := func(steps []policy.Step) (s string) {
		for i := range steps {
			s += steps[i].Tier.String() + " "
		}
		return s
	}
	alone := centralPath(t, false)
	if got := tiers(alone.Steps[:alone.Len]); got != "tree user tenant environment provider " || len(alone.Central) != 0 {
		t.Errorf("without a fleet: %s", got)
	}
	p := centralPath(t, true)
	if got := tiers(p.Steps[:p.Len]); got != "tree user provider " { // a tree that degrades must be seen here
		t.Errorf("held here: %s", got)
	}
	if got := tiers(p.Central); got != "tenant environment provider " {
		t.Errorf("central: %s", got)
	}
	if s := p.Steps[p.Len-1]; len(s.Limit.Meters) != 0 || s.Limit.Central().Meters[0].Limit() != 2 || p.Central[1].Limit.Meters[0].Limit() != 1 {
		t.Error("a provider's gate, and an environment's half of its limit")
	}
	c, _ := policy.Compile(centralSpec(true))
	if n := c.OutputBound(&p, nil, 99_000, -1); n > 1000 {
		t.Errorf("an output of %d is reserved that the central limit never has room for", n)
	}
}

// A floor is what the policy says, for each Envoy; one that is less than a unit admits nothing.
func TestCentralFloor(t *testing.T) {
	p := centralPath(t, true)
	cost := policy.Cost{Requests: 1, Input: 10}
	if r := p.WithoutFloor(&cost); r.Reason != policy.NoShare || r.Tier != policy.TierEnvironment || r.Dimension != policy.RPS || r.Limit != 1 {
		t.Errorf("two requests a second have no floor: %+v", r)
	}
	floor := p.Floor()
	if floor.Len != 1 || floor.Steps[0].Limit.Meters[0].Limit() != 500 || floor.Steps[0].Key == p.Central[0].Key {
		t.Fatalf("%d steps", floor.Len)
	}
	r := p.NoFloor(&policy.Refusal{Reason: policy.RequestTooLarge, Tier: policy.TierTenant, Dimension: policy.TPM, Limit: 500, Need: 600, Wait: time.Hour})
	if r.Reason != policy.NoShare || r.Limit != 100_000 || r.Need != 600 || r.Wait != time.Second {
		t.Errorf("a caller hears %+v", r)
	}
	if p.Shadow = true; p.WithoutFloor(&cost).Reason != policy.None {
		t.Error("a policy that watches refuses")
	}
}
