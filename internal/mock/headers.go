// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"net/http"
	"strconv"
	"time"
)

// names of limit headers, in the canonical form of http.Header.
type limitNames struct{ limit, remaining, reset string }

var (
	openAIRequests    = limitNames{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"}
	openAITokens      = limitNames{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"}
	anthropicRequests = limitNames{"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"}
	anthropicTokens   = limitNames{"Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"}
)

// limitHeaders tells what is left, as the provider does: on successes too.
func limitHeaders(h http.Header, fam family, v verdict) {
	if fam == familyAnthropic {
		setLimit(h, anthropicRequests, v.requests, rfc3339(v.at, v.requests.full))
		setLimit(h, anthropicTokens, v.tokens, rfc3339(v.at, v.tokens.full))
		return
	}
	setLimit(h, openAIRequests, v.requests, goDuration(v.requests.full))
	setLimit(h, openAITokens, v.tokens, goDuration(v.tokens.full))
}

func setLimit(h http.Header, names limitNames, g gauge, reset string) {
	if g.limit == 0 {
		return
	}
	// One array for three headers: this runs for every call under a limit.
	values := []string{strconv.FormatInt(g.limit, 10), strconv.FormatInt(g.remaining, 10), reset}
	h[names.limit] = values[0:1:1]
	h[names.remaining] = values[1:2:2]
	h[names.reset] = values[2:3:3]
}

// goDuration is OpenAI's form (1s, 6m0s, 120ms), rounded up to milliseconds so
// that who obeys it is not early.
func goDuration(d time.Duration) string {
	return roundUp(d, time.Millisecond).String()
}

// rfc3339 is Anthropic's form, in whole seconds, rounded up.
func rfc3339(at int64, d time.Duration) string {
	t := time.Unix(0, at).Add(d)
	if whole := t.Truncate(time.Second); !whole.Equal(t) {
		t = whole.Add(time.Second)
	}
	return t.UTC().Format(time.RFC3339)
}

func roundUp(d, unit time.Duration) time.Duration {
	if d > never-unit {
		return d
	}
	return (d + unit - 1) / unit * unit
}

// retryHeaders tells when to come back; a cost that never fits gets none.
func retryHeaders(h http.Header, wait time.Duration) {
	if wait == never {
		return
	}
	seconds := max(1, int64(roundUp(wait, time.Second)/time.Second))
	h["Retry-After"] = []string{strconv.FormatInt(seconds, 10)}
	h["Retry-After-Ms"] = []string{strconv.FormatInt(int64(roundUp(wait, time.Millisecond)/time.Millisecond), 10)}
}
