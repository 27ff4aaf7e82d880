// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/policytest"
)

// acme is a policy with one tenant of 10,000 tokens a minute, of which a quarter may come at once.
func acme() *policy.Policy {
	spec, err := policy.Decode([]byte(`{"apiVersion":"weir/v1",
		"providers":{"openai":{"upstream":"https://api.openai.com"}},
		"limits":{"tenant":{"acme":{"tpm":"10000"}}}}`))
	if err != nil {
		panic(err)
	}
	p, err := policy.Compile(spec)
	if err != nil {
		panic(err)
	}
	return p
}

// A decision and its settlement: what was reserved and not used comes back.
func ExampleLedger_Reserve() {
	p := acme()
	ledger := policy.NewLedger(policytest.NewStore(), 1)
	var path policy.Path
	p.Path(&path, nil, &policy.Caller{Tenant: "acme"})

	now := int64(time.Hour)
	var call, other policy.Reservation
	d := ledger.Reserve(now, &path, policy.Cost{Requests: 1, Input: 500, Output: 2000}, &call)
	fmt.Println(d.Verdict)

	d = ledger.Reserve(now, &path, policy.Cost{Requests: 1, Input: 1000}, &other)
	fmt.Println(d.Verdict, d.Refusal.Reason, d.Refusal.Tier, d.Refusal.Dimension, "wait", d.Refusal.Wait.Round(time.Millisecond))

	ledger.Settle(now, &call, policy.Cost{Requests: 1, Input: 500, Output: 300})
	d = ledger.Reserve(now, &path, policy.Cost{Requests: 1, Input: 1000}, &other)
	fmt.Println(d.Verdict)
	// Output:
	// admit
	// deny limit_exceeded tenant tpm wait 6s
	// admit
}

// Ten branches of 100 tokens are more than half of what may come at once; nine are not.
func ExampleLedger_OpenFanout() {
	p := acme()
	ledger := policy.NewLedger(policytest.NewStore(), 1)
	caller := policy.Caller{Tenant: "acme"}
	leg := policy.Leg{Each: policy.Cost{Requests: 1, Input: 100}, Calls: 10}
	p.Path(&leg.Path, nil, &caller)

	now := int64(time.Hour)
	var used, branch policy.Reservation
	ledger.Reserve(now, &leg.Path, policy.Cost{Requests: 1, Input: 600}, &used)
	id, owner := policy.FanoutID{1, 2, 3}, p.Owner(&caller)
	bounds := policy.FanoutBounds{Most: 64, TTL: time.Minute, PerTree: 2}
	d := ledger.OpenFanout(now, id, owner, []policy.Leg{leg}, &bounds)
	fmt.Println(d.Refusal.Reason, "of 10 would fit:", d.Fits)

	leg.Calls = d.Fits
	ledger.OpenFanout(now, id, owner, []policy.Leg{leg}, &bounds)
	branches := 0
	for ledger.JoinFanout(now, id, owner, &leg.Path, leg.Each, &branch) {
		ledger.Settle(now, &branch, leg.Each)
		branches++
	}
	fmt.Println("branches:", branches)
	// Output:
	// fanout_refused of 10 would fit: 9
	// branches: 9
}

// A wrong policy gives an error for each thing that is wrong with it.
func ExampleCompile() {
	spec, _ := policy.Decode([]byte(`{"apiVersion":"weir/v1",
		"providers":{"openai":{"upstream":"api.openai.com"}},
		"limits":{"tenant":{"acme":{"tpm":"0"}}}}`))
	_, err := policy.Compile(spec)
	fmt.Println(err)
	// Output:
	// limits.tenant.acme.tpm: 0 is not between 1 and 1000000000000 (write 1 or more, or leave it out for no limit)
	// providers.openai.upstream: "api.openai.com" is no http or https address (write https://api.openai.com)
}
