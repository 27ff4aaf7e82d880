// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strconv"
	"time"

	"github.com/weirproxy/weir/policy"
)

// A voice is the form of errors that a client library reads.
type voice uint8

const (
	genericVoice voice = iota // OpenAI's, without its headers
	openAIVoice               // and Mistral's
	anthropicVoice
	geminiVoice
	bedrockVoice
	cohereVoice
	ollamaVoice
)

// voiceFor is that of the API that was asked, or else the dialect's.
func (d Dialect) voiceFor(a API) voice {
	if v := forms[a].voice; v != genericVoice {
		return v
	}
	return speeches[d].voice
}

// body writes the error object. All that goes into it is fixed text and numbers: nothing of the request is ever repeated,
// so nothing needs escaping and no prompt or key can leak.
func (v voice) body(r *Refusal) []byte {
	b := make([]byte, 0, 512)
	add := func(parts ...string) {
		for _, p := range parts {
			b = append(b, p...)
		}
	}
	text, end := message(r), "}"
	switch v {
	case anthropicVoice:
		add(`{"type":"error","error":{"type":"`, anthropicType(r.Reason), `","message":"`, text, `"`)
		end = "}}"
	case geminiVoice:
		add(`{"error":{"code":`, strconv.Itoa(r.Reason.Status()), `,"message":"`, text, `","status":"`, geminiStatus(r.Reason), `"`)
		if r.RetryAfter > 0 {
			add(`,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"`, seconds(r.RetryAfter), `"}]`)
		}
		add("}")
	case bedrockVoice:
		add(`{"message":"`, text, `","__type":"`, bedrockType(r.Reason), `"`)
	case cohereVoice:
		add(`{"message":"`, text, `"`)
	case ollamaVoice:
		add(`{"error":"`, text, `"`)
	default:
		add(`{"error":{"message":"`, text, `","type":"`, openAIType(r), `","param":null,"code":"`, code(r.Reason), `"`)
		end = "}}"
	}
	add(`,"weir":`, string(details(r)), end)
	return b
}

// seconds writes a time as Google's durations are written.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(float64(ceilMillis(d))/1000, 'f', -1, 64) + "s"
}

// code is OpenAI's own where there is one, so that libraries raise their RateLimitError; weir's reason otherwise.
func code(r policy.Reason) string {
	if r == policy.LimitExceeded || r == policy.ProviderCooling || r == policy.NoShare {
		return "rate_limit_exceeded"
	}
	return r.String()
}

func openAIType(r *Refusal) string {
	switch {
	case r.Reason.Status() == 429 && r.Dimension.Unit() == policy.Requests:
		return "requests"
	case r.Reason.Status() == 429:
		return "tokens"
	case r.Reason == policy.Internal:
		return "server_error"
	}
	return "invalid_request_error"
}

func anthropicType(r policy.Reason) string {
	switch r.Status() {
	case 429:
		return "rate_limit_error"
	case 413:
		return "request_too_large"
	case 404:
		return "not_found_error"
	case 403:
		return "permission_error"
	case 400:
		return "invalid_request_error"
	}
	return "api_error"
}

func geminiStatus(r policy.Reason) string {
	switch r.Status() {
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 404:
		return "NOT_FOUND"
	case 403:
		return "PERMISSION_DENIED"
	case 400, 413:
		return "INVALID_ARGUMENT"
	}
	return "UNAVAILABLE"
}

func bedrockType(r policy.Reason) string {
	switch r.Status() {
	case 429:
		return "ThrottlingException"
	case 404:
		return "ResourceNotFoundException"
	case 403:
		return "AccessDeniedException"
	case 400, 413:
		return "ValidationException"
	}
	return "ServiceUnavailableException"
}
