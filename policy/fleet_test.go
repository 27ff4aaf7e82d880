// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func fleetSpec() *Spec {
	n := func(c Count) *Count { return &c }
	return &Spec{
		APIVersion: APIVersion,
		Providers: map[string]ProviderSpec{"openai": {Upstream: "https://api.openai.com", Models: map[string]*LimitSpec{
			"gpt-4o": {RPM: n(100), Scope: "central"}, "gpt-*": {TPM: n(1000)},
		}}},
		Limits: LimitsSpec{
			Environment: map[string]*EnvironmentSpec{"ci": {Share: Whole / 5, LimitSpec: LimitSpec{RPM: n(3)}}},
			Tenant:      map[string]*LimitSpec{"default": {RPM: n(1)}, "acme": {RPM: n(2), Scope: "node"}},
			User:        map[string]*LimitSpec{"bob": {RPM: n(4)}, "acme/bob": {RPM: n(5)}},
			Tree:        map[string]*TreeSpec{"default": {Calls: 6}},
		},
	}
}

// Each limit is found once, under the key that its bucket has where there is just one such key.
func TestEntries(t *testing.T) {
	p, err := Compile(fleetSpec())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range p.Entries() {
		key := "many"
		if e.Key != 0 {
			key = "one"
		}
		got = append(got, e.Tier.String()+" "+e.Name+" "+key+" "+e.Limit.Scope.String())
	}
	want := []string{
		"provider openai/gpt-* one fleet", "environment ci/openai/gpt-* one fleet",
		"provider openai/gpt-4o one central", "environment ci/openai/gpt-4o one central", "environment ci one fleet",
		"tenant acme one node", "tenant default many fleet", "user acme/bob one fleet", "user bob many fleet", "tree default many fleet",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	m, _ := p.Providers[0].Models.Lookup("gpt-4o")
	var path Path
	p.Path(&path, m, &Caller{Tenant: "acme", User: "bob", Environment: "ci", Tree: "t"})
	for _, s := range path.Steps[:path.Len] {
		if s.Tier != TierTree && !slices.ContainsFunc(p.Entries(), func(e Entry) bool { return e.Key == s.Key && e.Limit == s.Limit }) {
			t.Errorf("no entry for the bucket of %v", s.Tier)
		}
	}
}

func TestFleetTerms(t *testing.T) {
	s := fleetSpec()
	p, err := Compile(s)
	want := FleetTerms{10 * time.Second, time.Hour, Whole / 10, 100, 100 * time.Millisecond}
	if err != nil || p.Fleet != want {
		t.Errorf("got %+v, %v", p.Fleet, err)
	}
	s.Fleet = FleetSpec{Scope: "galaxy", Lease: 1, Forget: 1, Floor: Whole, MaxEnvoys: 1e6}
	_, err = Compile(s)
	for _, field := range []string{"fleet.scope", "fleet.lease", "fleet.forget", "fleet.floor", "fleet.max_envoys"} {
		if err == nil || strings.Count(err.Error(), field) != 1 {
			t.Errorf("%s is not named once in %v", field, err)
		}
	}
	if e := new(FieldError); !errors.As(err, &e) || e.Hint == "" {
		t.Errorf("no hint in %v", err)
	}
}
