// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"fmt"
	"strings"
	"time"
)

// failure is an error to be told in the caller's dialect.
type failure struct {
	status  int
	kind    string // of a 429: "requests" or "tokens"
	code    string // "" is the usual one of the status
	message string
}

// quotaCodes are OpenAI's: they mean that waiting does not help.
var quotaCodes = map[string]bool{
	"insufficient_quota": true, "credit_balance_exhausted": true, "organization_spend_limit_exceeded": true,
	"project_spend_limit_exceeded": true, "organization_usage_limit_exceeded": true, "enforced_spend_limit_reached": true,
}

func (f failure) terminal() bool { return quotaCodes[f.code] }

// json is the body of the failure.
func (f failure) json(b text, family family, id int64) text {
	switch family {
	case familyOpenAI:
		return f.openAI(b)
	case familyAnthropic:
		return f.anthropic(b, id)
	}
	return b.s(`{"ok":false,"error":`).q(f.message).s(`}`)
}

func (f failure) openAI(b text) text {
	kind, code := f.openAINames()
	b = b.s(`{"error":{"message":`).q(f.message).s(`,"type":`).q(kind).s(`,"param":null,"code":`)
	if code == "" {
		return b.s(`null}}`)
	}
	return b.q(code).s(`}}`)
}

func (f failure) openAINames() (kind, code string) {
	switch f.status {
	case 400, 404, 405, 413:
		kind = "invalid_request_error"
	case 401:
		kind, code = "invalid_request_error", "invalid_api_key"
	case 403:
		kind = "permission_error"
	case 429:
		kind, code = f.kind, "rate_limit_exceeded"
	case 503:
		kind, code = "service_unavailable_error", "server_is_overloaded"
	default:
		kind = "server_error"
	}
	switch {
	case f.terminal():
		return "insufficient_quota", f.code
	case f.code == "slow_down":
		return "rate_limit_error", f.code
	case f.code != "":
		return kind, f.code
	}
	return kind, code
}

func (f failure) anthropic(b text, id int64) text {
	b = b.s(`{"type":"error","error":{"type":`).q(anthropicType(f.status)).s(`,"message":`).q(f.message)
	if f.code != "" {
		code := f.code
		if f.terminal() {
			code = "enforced_spend_limit_reached"
		}
		b = b.s(`,"details":{"error_code":`).q(code).s(`}`)
	}
	return b.s(`},"request_id":`).ident("req_", id).s(`}`)
}

func anthropicType(status int) string {
	switch status {
	case 400, 405:
		return "invalid_request_error"
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	return "api_error"
}

// forced is a failure on command.
func forced(status int, code string) failure {
	f := failure{status: status, kind: "requests", code: code}
	switch {
	case f.terminal():
		f.message = "You exceeded your current quota, please check your plan and billing details."
	case status == 429:
		f.message = "Rate limit reached (mock, on command)."
	default:
		f.message = fmt.Sprintf("The mock answers %d on command.", status)
	}
	return f
}

// refusal is the 429 of the mock's own limits, in the words of the provider.
func refusal(fam family, v verdict, model string, asked int64) failure {
	f := failure{status: 429, kind: v.denied}
	g := v.tokens
	if v.denied == "requests" {
		g, asked = v.requests, 1
	}
	unit := limitUnit(v.denied, v.window)
	switch {
	case fam == familyAnthropic:
		f.message = fmt.Sprintf("This request would exceed your organization's rate limit of %d %s.", g.limit, unit)
	case v.wait == never:
		f.message = fmt.Sprintf("Request too large for %s in organization org-mock on %s: Limit %d, Requested %d.",
			model, unit, g.limit, asked)
	default:
		f.message = fmt.Sprintf("Rate limit reached for %s in organization org-mock on %s: Limit %d, Used %d, Requested %d. Please try again in %v.",
			model, unit, g.limit, v.used, asked, goDuration(v.wait))
	}
	return f
}

// limitUnit is "tokens per min (TPM)" for the usual window.
func limitUnit(dimension string, window time.Duration) string {
	if window != time.Minute {
		return dimension + " per " + window.String()
	}
	return dimension + " per min (" + strings.ToUpper(dimension[:1]) + "PM)"
}
