// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strconv"
	"time"

	"github.com/weirproxy/weir/policy"
)

// A Refusal is what a caller is told.
type Refusal struct {
	policy.Refusal
	API        API           // that was asked
	RetryAfter time.Duration // what to wait, spread so that callers do not all come back at once; 0: nothing to say
	Now        time.Time
	Detail     string // more to say, in plain text without anything of the caller's
}

// A Reply is a complete local answer.
type Reply struct {
	Status  int
	Headers [][2]string
	Body    []byte
}

// shouldRetryUntil is the longest wait for which callers are told to come back by themselves: beyond it, clients differ in
// whether they sleep for hours, give up or come back at once (RATIONALE.md, "Why x-should-retry: false?").
const shouldRetryUntil = time.Minute

// Refuse makes the answer to a refused call in the form that clients of the dialect read.
func (d Dialect) Refuse(r *Refusal) Reply {
	p := Reply{Status: r.Reason.Status()}
	v := d.voiceFor(r.API)
	p.add("content-type", "application/json")
	p.add("x-weir-decision", policy.Deny.String())
	p.add("x-weir-reason", r.Reason.String())
	if r.Limit > 0 {
		p.add("x-weir-tier", r.Tier.String())
		p.add("x-weir-dimension", r.Dimension.String())
		v.limitHeaders(&p, r)
	} else if r.Gated() {
		p.add("x-weir-tier", r.Tier.String())
	}
	p.add("x-should-retry", strconv.FormatBool(r.mayRetry()))
	if r.RetryAfter > 0 {
		p.add("retry-after", strconv.FormatInt(ceilSeconds(r.RetryAfter), 10))
		p.add("retry-after-ms", strconv.FormatInt(ceilMillis(r.RetryAfter), 10))
	}
	if v == bedrockVoice {
		p.add("x-amzn-errortype", bedrockType(r.Reason))
	}
	p.Body = v.body(r)
	return p
}

//go:noinline
func (p *Reply) add(name, value string) { p.Headers = append(p.Headers, [2]string{name, value}) }

func (r *Refusal) mayRetry() bool {
	switch r.Reason {
	case policy.LimitExceeded, policy.QueueFull, policy.QueueTimeout, policy.ProviderCooling:
		return r.RetryAfter <= shouldRetryUntil
	case policy.CASContention, policy.NoShare, policy.Internal:
		return true
	}
	return false
}

func ceilSeconds(d time.Duration) int64 { return int64(max((d+time.Second-1)/time.Second, 1)) }

func ceilMillis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// limitHeaders says which limit refused, and what of it is left: in IETF form (draft-ietf-httpapi-ratelimit-headers) and in
// the provider's.
func (v voice) limitHeaders(p *Reply, r *Refusal) {
	limit, left := strconv.FormatInt(r.Limit, 10), strconv.FormatInt(max(r.Remaining, 0), 10)
	name := `"` + r.Tier.String() + "-" + r.Dimension.String() + `"`
	window := ""
	if r.Window > 0 {
		window = ";w=" + strconv.FormatInt(ceilSeconds(r.Window), 10)
	}
	p.add("ratelimit-policy", name+";q="+limit+window)
	if r.Reason == policy.RequestTooLarge {
		return
	}
	p.add("ratelimit", name+";r="+left+";t="+strconv.FormatInt(ceilSeconds(r.Wait), 10))
	if u := r.Dimension.Unit(); r.Dimension == policy.InFlight || u == policy.Retries || u == policy.Spend {
		return
	}
	switch v {
	case openAIVoice:
		unit := "tokens"
		if r.Dimension.Unit() == policy.Requests {
			unit = "requests"
		}
		p.add("x-ratelimit-limit-"+unit, limit)
		p.add("x-ratelimit-remaining-"+unit, left)
		p.add("x-ratelimit-reset-"+unit, r.Wait.Round(time.Millisecond).String())
	case anthropicVoice:
		prefix := "anthropic-ratelimit-" + anthropicUnits[r.Dimension.Unit()] + "-"
		p.add(prefix+"limit", limit)
		p.add(prefix+"remaining", left)
		p.add(prefix+"reset", timestamp(r.Now.Add(r.Wait).UTC()))
	}
}

// timestamp writes a time of UTC as RFC 3339. (Time.Format can write all else, too, which is 30 KB of WebAssembly.)
func timestamp(t time.Time) string {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b := strconv.AppendInt(nil, int64(year), 10)
	for i, n := range [...]int{int(month), day, hour, minute, second} {
		b = append(b, "--T::"[i], byte('0'+n/10), byte('0'+n%10))
	}
	return string(append(b, 'Z'))
}

var anthropicUnits = [policy.Spend + 1]string{
	policy.Requests: "requests", policy.Tokens: "tokens", policy.InputTokens: "input-tokens", policy.OutputTokens: "output-tokens",
}
