// SPDX-License-Identifier: Apache-2.0

package feedback

// A meaning is what a word of a provider says about a refusal.
type meaning uint8

const (
	nothing   meaning = iota
	tooFast           // congestion
	tooSteep          // congestion of the ramp
	busy              // overload
	warmingUp         // overload that a retry gets over
	noQuota           // exhausted
	theirs            // client error
	onlyKind          // says which limit, not why
)

// codes are the providers' own words, in small letters, for what refused a call. They are from the providers' documentation and
// the error types in their SDKs; a word that stands here decides, whatever the message says.
var codes = map[string]meaning{
	// OpenAI, and who speaks like it: Azure, Groq, Mistral, vLLM.
	"rate_limit_exceeded": tooFast, "rate_limited": tooFast, "too_many_requests": tooFast, "toomanyrequests": tooFast,
	"rate_limit": tooFast, "limit_burst_rate": tooFast, "rate_limit_reached": tooFast, "requests_rate_limit_exceeded": tooFast,
	"slow_down":            tooSteep,
	"server_is_overloaded": busy, "service_unavailable_error": busy, "service_unavailable": busy, "engine_overloaded": busy,
	"capacity_exceeded":  busy,
	"insufficient_quota": noQuota, "credit_balance_exhausted": noQuota, "organization_spend_limit_exceeded": noQuota,
	"project_spend_limit_exceeded": noQuota, "organization_usage_limit_exceeded": noQuota, "quota_exceeded": noQuota,
	"billing_hard_limit_reached": noQuota, "billing_not_active": noQuota, "access_terminated": noQuota,
	"insufficient_balance": noQuota, "insufficient_credits": noQuota, "insufficient_funds": noQuota,
	"tokens": onlyKind, "requests": onlyKind, "input_tokens": onlyKind, "output_tokens": onlyKind,

	// Anthropic.
	"rate_limit_error": tooFast, "overloaded_error": busy, "overloaded": busy, "timeout_error": busy, "api_error": busy,
	"enforced_spend_limit_reached": noQuota, "billing_error": noQuota,
	"request_too_large": theirs,

	// Google. RESOURCE_EXHAUSTED itself is a rate as often as a quota: the violations tell.
	"resource_exhausted": tooFast, "ratelimitexceeded": tooFast, "rate_limit_exceeded_per_minute": tooFast,
	"userratelimitexceeded": tooFast, "quotaexceeded": noQuota, "dailylimitexceeded": noQuota, "payment_required": noQuota,
	"unavailable": busy, "deadline_exceeded": busy,

	// AWS.
	"throttlingexception": tooFast, "throttling": tooFast, "throttledexception": tooFast, "toomanyrequestsexception": tooFast,
	"requestlimitexceeded": tooFast, "throttling_exception": tooFast,
	"modelnotreadyexception": warmingUp, "serviceunavailableexception": busy, "modeltimeoutexception": busy,
	"modelstreamerrorexception": busy, "modelerrorexception": busy, "internalserverexception": busy,
	"servicequotaexceededexception": noQuota, "limitexceededexception": noQuota,
	"validationexception": theirs, "accessdeniedexception": theirs, "resourcenotfoundexception": theirs,

	// draft-ietf-httpapi-ratelimit-headers, the last part of the problem type.
	"quota-exceeded": tooFast, "temporary-reduced-capacity": busy, "abnormal-usage-detected": tooFast,
}

// maxCode is the length of the longest code.
const maxCode = 40

// meaningOf looks a code up. AWS puts an address behind a colon or before a #, problem types one before their #.
func meaningOf(code string) meaning {
	for i := len(code) - 1; i >= 0; i-- {
		if code[i] == '#' || code[i] == '/' && hasPrefixFold(code, "http") {
			code = code[i+1:]
			break
		}
	}
	for i := range len(code) {
		if code[i] == ':' {
			code = code[:i]
			break
		}
	}
	var small [maxCode]byte
	if len(code) > maxCode {
		return nothing
	}
	for i := range len(code) {
		small[i] = lower(code[i])
	}
	return codes[string(small[:len(code)])]
}

// Words of a message, in small letters, for providers whose codes say nothing.
var (
	// exhaustedWords speak of an account that has nothing left. "quota" alone does not: refusals of a rate speak of it too.
	exhaustedWords = []string{
		"insufficient", "exceeded your current quota", "quota exceeded", "quota has been exceeded", "quota exhausted",
		"quota has been exhausted", "quota is exhausted", "out of quota", "exceeded your quota", "exceeded the quota",
		"exceeded its quota", "monthly quota", "daily quota",
		"billing", "credit balance", "out of credit", "no credits", "payment required", "spend limit", "spending limit",
		"usage limit", "daily limit", "weekly limit", "monthly limit", "per day", "per month", "limit reached for today",
		"tokens_per_day", "(rpd)", "(tpd)", "calls / month", "free tier limit",
	}
	// limitReached speaks of a quota unless a rate is named with it.
	limitReached = []string{"limit reached", "limit has been reached", "reached the limit", "reached your limit"}
	rateWords    = []string{"rate limit", "rate-limit", "ratelimit", "per minute", "per second", "too many", "concurren", "(rpm)", "(tpm)", "slow down"}
	rampWords    = []string{"slow down", "slow_down", "ramp", "increasing too quickly", "acceleration limit"}

	// strongWords count even where the status says that the request is at fault: Anthropic answers 400 when money is out.
	strongWords = []string{"credit balance is too low", "usage limits", "insufficient_quota", "insufficient balance",
		"insufficient credit", "exceeded your current quota", "quota exceeded", "spend limit", "key limit exceeded"}
)
