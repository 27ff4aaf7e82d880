// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/tokens"
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

// checkUsage compares what the provider said of a call's use, read from what was answered.
func checkUsage(w *caseWorld, v json.RawMessage) {
	var want map[string]int64
	if err := json.Unmarshal(v, &want); err != nil {
		w.notKnown("usage: %v", err)
	}
	c := w.last()
	if c.encoding != "" && c.x.Upstream("accept-encoding") == "identity" {
		return // the provider was asked not to compress, and what it sends all the same counts as counted
	}
	u := w.usage(c, c.answer)
	w.compareUsage(want, u)
	if len(c.answer) == 1 || w.c.Input.Response != nil && w.c.Input.Response.BodySplit != "" {
		w.cutEverywhere(want, c)
	}
}

// cutEverywhere reads the same bytes in every two pieces.
func (w *caseWorld) cutEverywhere(want map[string]int64, c *caseCall) {
	whole := []byte{}
	for _, p := range c.answer {
		whole = append(whole, p...)
	}
	before := len(*w.problems)
	for i := range min(len(whole), 4096) {
		if w.compareUsage(want, w.usage(c, [][]byte{whole[:i], whole[i:]})); len(*w.problems) > before {
			w.wrong("cut at %d of %d bytes", i, len(whole))
			return
		}
	}
}

func (w *caseWorld) compareUsage(want map[string]int64, u dialect.Usage) {
	beside := max(u.CacheRead, 0) + max(u.CacheWrite, 0)
	said := func(n int64) int64 { return max(n, 0) }
	input, output := said(u.Input), said(u.Output)
	for name, n := range want {
		var got []int64 // any of them
		switch name {
		case "input":
			got = []int64{input}
		case "output":
			got = []int64{output}
		case "cache_read":
			got = []int64{said(u.CacheRead)}
		case "cache_creation", "cache_write":
			got = []int64{said(u.CacheWrite)}
		case "total": // what providers call that leaves the cache out, or not
			got = []int64{input + output, input + output + beside}
		case "input_total":
			got = []int64{input + beside}
		case "total_all":
			got = []int64{input + output + beside}
		default:
			w.notKnown("unknown member of usage: %s", name)
			continue
		}
		if got[0] != n && got[len(got)-1] != n {
			w.wrong("usage: %s is %v, want %d", name, got, n)
		}
	}
}

// usage reads an answer as the filter does.
func (w *caseWorld) usage(c *caseCall, answer [][]byte) dialect.Usage {
	var r dialect.Reader
	var a dialect.Answer
	d, _ := dialect.Parse(w.policy.Providers[0].Dialect)
	r.Start(&a, d.APIOf("POST", c.request.Path), tokens.Family(0), c.kind)
	for _, p := range answer {
		a.Feed(p)
	}
	a.End()
	return a.Usage()
}
