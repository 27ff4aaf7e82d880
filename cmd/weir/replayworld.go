// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/policytest"
)

// A replayWorld is the buckets of one Envoy, whose clock is that of the log.
type replayWorld struct {
	policy  *policy.Policy
	ledger  *policy.Ledger
	renewed int64
	open    openCalls
}

func newReplayWorld(p *policy.Policy) *replayWorld {
	return &replayWorld{policy: p, ledger: policy.NewLedger(policytest.NewStore(), 1)}
}

// A replayRequest is a request as the policy sees it.
type replayRequest struct {
	at       time.Time
	duration time.Duration
	provider *policy.Provider
	model    *policy.Model
	caller   policy.Caller
	class    policy.Class
	cost     policy.Cost
	actual   policy.Cost
	known    bool // the log says what it cost
}

// request reads a line; false: its provider is not in the policy.
func (w *replayWorld) request(d *decided) (*replayRequest, bool) {
	q := &replayRequest{at: d.at, duration: d.duration}
	for _, pr := range w.policy.Providers {
		if pr.Name == d.word("provider") {
			q.provider = pr
		}
	}
	if q.provider == nil {
		return nil, false
	}
	q.model, _ = q.provider.Models.Lookup(d.word("model"))
	name := func(field string) string { return w.policy.Hasher.Shorten(cmp.Or(d.word(field), policy.Unknown)) }
	q.caller = policy.Caller{Environment: name("environment"), Tenant: name("tenant"), User: name("user"), Tool: name("tool"), Vouched: true}
	for _, c := range w.policy.Classes {
		if c.Name == d.word("class") {
			q.class = c
		}
	}
	rating := w.policy.Rating(d.word("model"))
	reserved, charged, known := tokensOf(d)
	q.cost, q.actual, q.known = rating.Cost(reserved), rating.Cost(charged), known
	return q, true
}

// tokensOf is what a request reserved, and what it was charged. Of one that was refused there is only what it needed of the limit
// that refused it.
func tokensOf(d *decided) (reserved, charged policy.TokenCounts, known bool) {
	reserved = policy.TokenCounts{Input: d.counted("input"), Output: d.counted("output")}
	if _, known = d.count("output"); !known {
		if d.word("dimension") == "tpm" || d.word("dimension") == "tph" || d.word("dimension") == "tpd" || d.word("dimension") == "tokens" {
			reserved.Input, known = d.count("need")
		}
		return reserved, reserved, known
	}
	charged = policy.TokenCounts{Input: d.counted("charged_input"), Output: d.counted("charged_output")}
	if d.word("how") == "bound" { // far more than it can be
		reserved.Input = charged.Input
	}
	return reserved, charged, true
}

// key is whose limit of a tier the request meets.
func (q *replayRequest) key(t policy.Tier) string {
	switch t {
	case policy.TierProvider:
		if q.model != nil {
			return q.provider.Name + " " + q.model.Pattern
		}
		return q.provider.Name
	case policy.TierUser:
		return q.caller.Tenant + "/" + q.caller.User
	}
	return q.caller.Key(t)
}

// put has the policy decide on a request, and settles those that have ended before.
func (w *replayWorld) put(q *replayRequest) (*policy.Refusal, bool) {
	now := q.at.UnixNano()
	w.until(now)
	var path policy.Path
	w.policy.Path(&path, q.model, &q.caller)
	call := &openCall{actual: q.actual, ends: now + int64(q.duration)}
	w.ledger.SetWall(now, now)
	if d := w.ledger.Reserve(now, &path, q.cost, &call.reservation); d.Verdict != policy.Admit {
		return &d.Refusal, true
	}
	heap.Push(&w.open, call)
	if q.duration == 0 {
		w.until(now)
	}
	return nil, false
}

// until settles all calls that have ended by a time, each at its own.
func (w *replayWorld) until(now int64) {
	for len(w.open) > 0 {
		next := min(w.open[0].ends, now)
		for w.renewed = max(w.renewed, next-int64(time.Hour)); w.renewed+policy.RenewEvery <= next; {
			w.renewed += policy.RenewEvery
			w.ledger.Renew(w.renewed)
		}
		if w.open[0].ends > now {
			return
		}
		call := heap.Pop(&w.open).(*openCall)
		w.ledger.Settle(call.ends, &call.reservation, call.actual)
	}
}

// openCalls are calls that have not ended, the next end first.
type openCalls []*openCall

type openCall struct {
	ends        int64
	reservation policy.Reservation
	actual      policy.Cost
}

func (o openCalls) Len() int           { return len(o) }
func (o openCalls) Less(i, j int) bool { return o[i].ends < o[j].ends }
func (o openCalls) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }
func (o *openCalls) Push(x any)        { *o = append(*o, x.(*openCall)) }
func (o *openCalls) Pop() any {
	last := len(*o) - 1
	x := (*o)[last]
	*o = (*o)[:last]
	return x
}
