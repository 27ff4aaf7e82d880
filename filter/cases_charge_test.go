// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"strings"

	"github.com/weirproxy/weir/policy"
)

// checkCharge compares what calls count as, by id, or that of the only one.
func checkCharge(w *caseWorld, v json.RawMessage) {
	var byID map[string]json.RawMessage
	if json.Unmarshal(v, &byID) != nil || byID["min"] != nil || byID["max"] != nil {
		w.checkChargeOf(w.last(), v)
		return
	}
	for name, v := range byID {
		for _, c := range w.matching(name) {
			w.checkChargeOf(c, v)
		}
	}
}

func (w *caseWorld) checkChargeOf(c *caseCall, v json.RawMessage) {
	input, output, _ := w.charged(c.id)
	var words string
	if json.Unmarshal(v, &words) != nil {
		w.checkAmount(c.id+": charge", input+output, v)
		return
	}
	switch words {
	case "0 or input only":
		if output != 0 {
			w.wrong("%s: %d tokens of output were charged", c.id, output)
		}
	case "estimate, >=0": // what was not to be believed counts as estimated, what was may count as said
		if e, ok := w.estimate(c); ok && (input < e.input || output < 0 || output > e.output) {
			w.wrong("%s: %d+%d tokens were charged, %d+%d estimated", c.id, input, output, e.input, e.output)
		}
	default:
		w.notKnown("unknown charge %q", words)
	}
}

func checkRequestsUsed(w *caseWorld, v json.RawMessage) {
	n := int64(0)
	for _, c := range w.order {
		_, _, requests := w.charged(c.id)
		n += requests
	}
	w.checkCount("requests used", n, v)
}

// usedByRefused adds up the tokens of calls that were refused.
func (w *caseWorld) usedByRefused() (n int64) {
	for _, c := range w.order {
		if c.became() == callRefused {
			input, output, _ := w.charged(c.id)
			n += input + output
		}
	}
	return n
}

type caseUsed struct{ Requests, Tokens *int64 }

// check compares what is used of the limits that there are.
func (u *caseUsed) check(w *caseWorld, what string, got usedUp) {
	for d, n := range got.units {
		want := u.Tokens
		if d.Unit() == policy.Requests {
			want = u.Requests
		}
		if want != nil && n != *want {
			w.wrong("%s: %d of %v used, want %d", what, n, d, *want)
		}
	}
}

// checkUsed compares what is used of keys such as user:u1.
func checkUsed(w *caseWorld, v json.RawMessage) {
	var want map[string]caseUsed
	if err := strict(v, &want); err != nil {
		w.notKnown("used: %v", err)
	}
	for key, u := range want {
		scope, name, _ := strings.Cut(key, ":")
		keys := caseKeys{tenant: w.tenantOf(name)}
		tier := policy.TierTenant
		switch caseScopes[scope] {
		case "user":
			tier, keys.user = policy.TierUser, name
		case "tenant":
			keys.tenant = name
		default:
			w.notKnown("unknown scope in %q", key)
			continue
		}
		u.check(w, key, w.used(tier, keys))
	}
}

// tenantOf is the tenant with which a user came.
func (w *caseWorld) tenantOf(user string) string {
	for _, c := range w.order {
		if c.request.Headers["x-user"] == user {
			return c.request.Headers["x-team"]
		}
	}
	return ""
}

// checkUsedAfter compares what was used when a call had ended. Requests are those of the call, where no limit counts them.
func checkUsedAfter(w *caseWorld, id string, v json.RawMessage) {
	var want caseUsed
	if err := strict(v, &want); err != nil {
		w.notKnown("used_after_%s: %v", id, err)
	}
	want.check(w, "after "+id, w.call(id).left)
	if _, _, n := w.charged(id); want.Requests != nil && n != *want.Requests {
		w.wrong("%s: %d requests used, want %d", id, n, *want.Requests)
	}
}

// inFlight adds up what is in flight of all calls.
func (w *caseWorld) inFlight() (n int64) {
	for _, c := range w.order {
		n += w.used(policy.TierTool, caseKeys{tool: callName(c.id)}).inFlight
	}
	return n + w.used(policy.TierTenant, caseKeys{}).inFlight
}

// checkNeverNegative: exactly as many calls as the limit says are in flight at once, not one more.
func checkNeverNegative(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	most, open := int64(1), w.used(policy.TierTenant, caseKeys{}).inFlight
	for _, t := range w.tiers() {
		if t.Concurrency != nil {
			most = *t.Concurrency
		}
	}
	r := w.last().request
	b, _ := r.body()
	for i := range most + 1 - open {
		x := r.send(w.process.Worker(int(i)), b, nil)
		defer x.Close()
		if x.Sent != (i < most-open) {
			w.wrong("of %d more calls in flight, the limit being %d: sent %v", i+1, most, x.Sent)
		}
	}
}
