// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strconv"
	"time"

	"github.com/weirproxy/weir/policy"
)

// details says the same for programs, in one form for all dialects.
func details(r *Refusal) []byte {
	b := append([]byte(nil), `{"decision":"deny","reason":"`...)
	b = append(append(b, r.Reason.String()...), '"')
	if r.Limit > 0 {
		b = append(append(b, `,"tier":"`...), r.Tier.String()...)
		b = append(append(b, `","dimension":"`...), r.Dimension.String()...)
		b = strconv.AppendInt(append(b, `","limit":`...), r.Limit, 10)
		if r.Window > 0 {
			b = strconv.AppendInt(append(b, `,"window_s":`...), ceilSeconds(r.Window), 10)
			b = strconv.AppendInt(append(b, `,"need":`...), r.Need, 10)
			b = strconv.AppendInt(append(b, `,"remaining":`...), r.Remaining, 10)
		}
	} else if r.Gated() {
		b = append(append(append(b, `,"tier":"`...), r.Tier.String()...), '"')
	}
	if r.RetryAfter > 0 {
		b = strconv.AppendInt(append(b, `,"retry_after_ms":`...), ceilMillis(r.RetryAfter), 10)
	}
	return append(b, '}')
}

// message is for people and models. That of a refusal which waiting cannot help avoids the words and the number that make
// libraries take it for something to try again (case reply-07).
func message(r *Refusal) string {
	const who = "Refused by weir, not by the provider: "
	s := ""
	switch r.Reason {
	case policy.LimitExceeded, policy.QuotaExhausted, policy.ProviderCooling:
		s = who + what(r) + "."
	case policy.RequestTooLarge:
		s = who + "the request needs " + quantity(r, r.Need) + ", and the " + r.Tier.String() + " limit of " + amount(r) +
			" never admits more than that. Make it smaller, or declare less output."
	case policy.QueueFull:
		s = who + what(r) + ", and too many wait for it already."
	case policy.QueueTimeout:
		s = who + what(r) + ", and it may not wait longer."
	case policy.RetryBudgetExhausted:
		s = who + "the request tree has used up its " + quantity(r, r.Limit) + "."
	case policy.FanoutRefused:
		s = who + "not all branches fit the " + r.Tier.String() + " limit of " + amount(r) + "."
	case policy.NoShare:
		s = who + "the fleet shares the " + r.Tier.String() + " limit of " + amount(r) + ", and this Envoy has not been granted a part of it."
	case policy.CASContention:
		s = who + "too many requests at the same bucket at once."
	case policy.NotMetered:
		s = who + "what this path costs cannot be counted, and the policy does not name it as unmetered."
	case policy.UnknownPrefix:
		s = who + "no provider has this path prefix."
	case policy.BadIdentity:
		s = who + "an identity header came twice."
	case policy.BadPath:
		s = who + "the path has a dot segment."
	case policy.UnreadableBody:
		s = who + "the body is no JSON object, or does not show which model's limits are its own, so that neither its model nor its tokens can be told."
	default:
		s = who + "it failed inside."
	}
	if r.Detail != "" {
		s += " " + r.Detail
	}
	if r.RetryAfter > 0 {
		if r.Dimension == policy.InFlight {
			s += " Nobody knows when one will end."
		}
		s += " Try again in " + time.Duration(ceilMillis(r.RetryAfter)*int64(time.Millisecond)).String() + "."
	}
	return s
}

// what says what refuses for now: a limit, or what the provider has said before.
func what(r *Refusal) string {
	switch {
	case r.Limit > 0:
		return "the " + r.Tier.String() + " limit of " + amount(r) + left(r)
	case r.Reason == policy.QuotaExhausted:
		return "the provider has said that the quota is used up"
	}
	return "the provider has asked for a pause"
}

// amount says a limit in words: 10000 tokens in 1m0s (tpm).
func amount(r *Refusal) string {
	if r.Dimension == policy.InFlight {
		return count(r.Limit) + " requests in flight (in_flight)"
	}
	return quantity(r, r.Limit) + " in " + r.Window.Round(time.Millisecond).String() + " (" + r.Dimension.String() + ")"
}

// quantity says so many units of what the limit counts.
func quantity(r *Refusal, n int64) string {
	switch r.Dimension.Unit() {
	case policy.Requests:
		return count(n) + " requests"
	case policy.InputTokens:
		return count(n) + " input tokens"
	case policy.OutputTokens:
		return count(n) + " output tokens"
	case policy.Retries:
		return count(n) + " retries"
	case policy.Spend:
		return "$" + strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64)
	}
	return count(n) + " tokens"
}

// left says what of a limit is left, so that who reads it sees why what it has is not enough.
func left(r *Refusal) string {
	if r.Dimension == policy.InFlight {
		return " is reached"
	}
	number := func(n int64) string {
		if r.Dimension.Unit() == policy.Spend {
			return quantity(r, n)
		}
		return count(n)
	}
	now := " left for now"
	if r.Class {
		now = " left for the caller's class now"
	}
	s := " has " + number(max(r.Remaining, 0)) + now + ", and the request needs " + number(r.Need)
	if r.Burst < r.Limit {
		s = ", of which " + number(r.Burst) + " may come at once," + s
	}
	return s
}

func count(n int64) string { return strconv.FormatInt(n, 10) }
