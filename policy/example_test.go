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

// Ten branches of 400 tokens do not fit what may come at once; six would.
func ExampleLedger_ReserveFanout() {
	p := acme()
	ledger := policy.NewLedger(policytest.NewStore(), 1)
	var path policy.Path
	p.Path(&path, nil, &policy.Caller{Tenant: "acme"})

	now := int64(time.Hour)
	var used, all, branch policy.Reservation
	ledger.Reserve(now, &path, policy.Cost{Requests: 1, Input: 100}, &used)
	each := policy.Cost{Requests: 1, Input: 400}
	d := ledger.ReserveFanout(now, &path, each, 10, &all)
	fmt.Println(d.Refusal.Reason, "of 10 would fit:", d.Fits)

	ledger.ReserveFanout(now, &path, each, d.Fits, &all)
	for all.Split(each, &branch) {
		ledger.Settle(now, &branch, each)
	}
	fmt.Println("left of the reservation:", all.Cost.Input)
	// Output:
	// fanout_refused of 10 would fit: 6
	// left of the reservation: 0
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
