// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"testing"
	"time"
)

// newYear is 2030-01-01T00:00:00Z, the day of the field cases.
const newYear = 1893456000 * second

type headers = [][2]string

func sec(s float64) int64 { return int64(s * float64(time.Second)) }

// The first rows are field cases (reports and documentation of clients and providers); the name is the case's.
var classifyRows = []struct {
	name    string
	status  int
	headers headers
	body    string
	class   Class
	dim     Dimension
	wait    int64 // ns, -1 for not told
	retry   bool
}{
	{"p429-01 spend limit", 429, nil, `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","param":null,"code":"project_spend_limit_exceeded"}}`, Exhausted, Dimension{}, -1, false},
	{"p429-01 quota by type only", 429, headers{{"retry-after", "3"}}, `{"error":{"message":"x","type":"insufficient_quota","param":null,"code":null}}`, Exhausted, Dimension{}, sec(3), false},
	{"p429-02 quota with reset in words", 429, nil, `{"error":{"message":"The quota has been exhausted. It will reset at 2030-01-01T08:00:00Z.","type":"quota_exceeded","param":null,"code":"quota_exceeded"}}`, Exhausted, Dimension{}, -1, false},
	{"p429-03 tpm", 429, headers{{"retry-after", "6"}, {"x-ratelimit-limit-tokens", "15000"}, {"x-ratelimit-remaining-tokens", "3028"}, {"x-ratelimit-reset-tokens", "5.289s"}, {"x-ratelimit-limit-requests", "14400"}, {"x-ratelimit-remaining-requests", "14370"}, {"x-ratelimit-reset-requests", "2m59.56s"}}, `{"error":{"message":"Limit 15000, Used 11972, Requested 4351. Please try again in 5.289s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, Congestion, Dimension{Tokens, 0}, sec(6), true},
	{"p429-04 slow down", 429, nil, `{"error":{"message":"Please slow down.","type":"rate_limit_error","param":null,"code":"slow_down"}}`, Congestion, Dimension{}, -1, true},
	{"p429-04 slow down of old", 503, nil, `{"error":{"message":"Please slow down.","type":"rate_limit_error","param":null,"code":"slow_down"}}`, Congestion, Dimension{}, -1, true},
	{"p429-05 burst rate", 429, nil, `{"error":{"message":"Request burst rate exceeded","type":"TooManyRequests","param":null,"code":"limit_burst_rate"}}`, Congestion, Dimension{}, -1, true},
	{"p429-06 anthropic", 429, headers{{"retry-after", "17"}, {"anthropic-ratelimit-input-tokens-limit", "80000"}, {"anthropic-ratelimit-input-tokens-remaining", "0"}, {"anthropic-ratelimit-input-tokens-reset", "2030-01-01T00:00:17Z"}, {"anthropic-ratelimit-output-tokens-limit", "16000"}, {"anthropic-ratelimit-output-tokens-remaining", "16000"}, {"anthropic-ratelimit-output-tokens-reset", "2030-01-01T00:00:00Z"}, {"anthropic-ratelimit-requests-limit", "1000"}, {"anthropic-ratelimit-requests-remaining", "999"}}, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your input tokens per minute limit."},"request_id":"req_x"}`, Congestion, Dimension{InputTokens, minute}, sec(17), true},
	{"p429-08 anthropic 529", 529, nil, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, Overload, Dimension{InFlight, 0}, -1, true},
	{"p429-09 openai 503", 503, nil, `{"error":{"message":"busy","type":"service_unavailable_error","param":null,"code":"server_is_overloaded"}}`, Overload, Dimension{InFlight, 0}, -1, true},
	{"p429-11 gemini list", 429, nil, "[{\"error\":{\"code\":429,\"message\":\"Quota\",\"status\":\"RESOURCE_EXHAUSTED\"}}\n]", Congestion, Dimension{}, -1, true},
	{"p429-12 bedrock", 429, headers{{"x-amzn-errortype", "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/"}}, `{"message":"Too many tokens, please wait before trying again."}`, Congestion, Dimension{Tokens, 0}, -1, true},
	{"p429-14 azure", 429, headers{{"retry-after", "37"}, {"retry-after-ms", "37123"}, {"x-ratelimit-reset-tokens", "37"}}, `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current pricing tier. Please retry after 37 seconds."}}`, Congestion, Dimension{Tokens, 0}, sec(37.123), true},
	{"p429-15 azure, a day", 429, headers{{"retry-after", "86400"}}, `{"error":{"code":"429","message":"Please retry after 86400 seconds."}}`, Exhausted, Dimension{}, sec(86400), false},
	{"p429-16 azure sentinels", 200, headers{{"x-ratelimit-limit-tokens", "-1"}, {"x-ratelimit-remaining-tokens", "-1"}, {"x-ratelimit-reset-tokens", "0"}}, `{"object":"response","status":"completed"}`, OK, Dimension{}, -1, false},
	{"p429-17 error in a 200", 200, nil, `{"error":{"message":"upstream is busy","type":"rate_limit","param":null,"code":429}}`, Congestion, Dimension{}, -1, true},
	{"p429-19 gemini day and minute", 429, nil, `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier"},{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"},{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"20s"}]}}`, Exhausted, Dimension{Requests, day}, -1, false},
	{"p429-20 gemini without details", 429, nil, `{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}`, Congestion, Dimension{}, -1, true},
	{"p429-21 gemini wrapped", 429, nil, `{"error":{"message":"{\"error\":{\"code\":429,\"message\":\"Quota exceeded, limit: 0. Please retry in 45.578569677s.\",\"status\":\"RESOURCE_EXHAUSTED\"}}","code":429,"status":"Too Many Requests"}}`, Congestion, Dimension{}, -1, true},
	{"hdr-01 duration", 429, headers{{"x-ratelimit-remaining-requests", "0"}, {"x-ratelimit-reset-requests", "6m0s"}}, openAIRequests, Congestion, Dimension{Requests, 0}, sec(360), true},
	{"hdr-03 compound fraction", 429, headers{{"x-ratelimit-remaining-tokens", "0"}, {"x-ratelimit-reset-tokens", "2m59.56s"}}, openAIRequests, Congestion, Dimension{Requests, 0}, sec(179.56), true},
	{"hdr-04 ISO as a number", 429, headers{{"anthropic-ratelimit-requests-remaining", "0"}, {"anthropic-ratelimit-requests-reset", "2030-01-01T00:00:29Z"}, {"date", "Tue, 01 Jan 2030 00:00:00 GMT"}}, openAIRequests, Congestion, Dimension{Requests, minute}, sec(29), true},
	{"hdr-07 relative", 429, headers{{"x-ratelimit-reset", "42"}}, openAIRequests, Congestion, Dimension{Requests, 0}, sec(42), true},
	{"hdr-08 past epoch", 429, headers{{"x-ratelimit-reset", "1600000000"}}, openAIRequests, Congestion, Dimension{Requests, 0}, 0, true},
	{"hdr-11 date", 429, headers{{"retry-after", "Tue, 01 Jan 2030 00:01:00 GMT"}, {"date", "Tue, 01 Jan 2030 00:00:00 GMT"}}, openAIRequests, Congestion, Dimension{Requests, 0}, sec(60), true},
	{"hdr-12 zero", 429, headers{{"retry-after", "0"}}, openAIRequests, Congestion, Dimension{Requests, 0}, 0, true},
	{"hdr-13 negative", 429, headers{{"retry-after", "-3"}}, openAIRequests, Congestion, Dimension{Requests, 0}, -1, true},
	{"hdr-14 junk", 429, headers{{"retry-after", "soon"}}, openAIRequests, Congestion, Dimension{Requests, 0}, -1, true},
	{"hdr-17 two hours", 429, headers{{"retry-after", "7999"}}, openAIRequests, Exhausted, Dimension{Requests, 0}, sec(7999), false},
	{"hdr-18 overflow", 429, headers{{"retry-after", "1e400"}}, openAIRequests, Exhausted, Dimension{Requests, 0}, MaxWait, false},
	{"hdr-21 nothing left, on a 200", 200, headers{{"x-ratelimit-limit-tokens", "10000"}, {"x-ratelimit-remaining-tokens", "0"}, {"x-ratelimit-reset-tokens", "12s"}}, `{"choices":[]}`, OK, Dimension{}, -1, false},
	{"hdr-22 two windows", 429, headers{{"anthropic-ratelimit-unified-5h-status", "rejected"}, {"anthropic-ratelimit-unified-5h-reset", "1893456180"}, {"anthropic-ratelimit-unified-7d-status", "rejected"}, {"anthropic-ratelimit-unified-7d-reset", "1893715200"}, {"date", "Tue, 01 Jan 2030 00:00:00 GMT"}}, `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`, Exhausted, Dimension{0, 7 * day}, sec(259200), false},
	{"sseerr-01 code only", 200, nil, "data: {\"error\":{\"message\":\"rate limited\",\"code\":\"rate_limit_exceeded\"}}\n\n", Congestion, Dimension{}, -1, true},
	{"sseerr-04 response.failed", 200, nil, "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"slow\"},\"usage\":null}}\n\n", Congestion, Dimension{}, -1, true},
	{"sseerr-05 flat event", 200, nil, "event: error\ndata: {\"type\":\"error\",\"sequence_number\":1,\"code\":\"rate_limit_exceeded\",\"message\":\"slow\",\"param\":null}\n\n", Congestion, Dimension{}, -1, true},
	{"sseerr-07 an error quoted", 200, nil, `data: {"id":"chatcmpl-x","choices":[{"delta":{"content":"{\"error\":{\"code\":\"rate_limit_exceeded\"}}"}}]}`, OK, Dimension{}, -1, false},

	{"429 without a hint", 429, nil, "", Congestion, Dimension{}, -1, true},
	{"429 as HTML", 429, nil, "<html><h1>429 Too Many Requests</h1><a>Billing</a></html>", Congestion, Dimension{}, -1, true},
	{"429 as text", 429, nil, "Too Many Requests\n", Congestion, Dimension{Requests, 0}, -1, true},
	{"429 compressed", 429, nil, "\x1f\x8b\x08\x00{\"", Congestion, Dimension{}, -1, true},
	{"openai, one call too large", 429, nil, `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 31000.","type":"tokens","code":"rate_limit_exceeded"}}`, ClientError, Dimension{}, -1, false},
	{"groq, one call too large", 413, nil, `{"error":{"message":"Request too large for model","type":"tokens","code":"rate_limit_exceeded"}}`, ClientError, Dimension{}, -1, false},
	{"AWS, old protocol", 400, nil, `{"__type":"ThrottlingException","message":"Rate exceeded"}`, Congestion, Dimension{}, -1, false},
	{"cerebras, the day", 429, headers{{"x-ratelimit-remaining-requests-day", "0"}, {"x-ratelimit-reset-requests-day", "33011.5"}, {"x-ratelimit-remaining-tokens-minute", "9"}}, `{"message":"x","type":"too_many_requests_error","code":"request_quota_exceeded"}`, Exhausted, Dimension{Requests, day}, sec(33011.5), false},
	{"openai rpd", 429, headers{{"x-ratelimit-remaining-requests", "0"}, {"x-ratelimit-reset-requests", "7m12s"}}, `{"error":{"message":"Rate limit reached for gpt-4 on requests per day (RPD): Limit 200, Used 200.","type":"requests","code":"rate_limit_exceeded"}}`, Exhausted, Dimension{Requests, day}, sec(432), false},
	{"openai tpm by words", 429, nil, `{"error":{"message":"Rate limit reached for gpt-4 in organization org-x on tokens per min (TPM): Limit 10000","type":"tokens","code":"rate_limit_exceeded"}}`, Congestion, Dimension{Tokens, minute}, -1, true},
	{"azure call rate", 429, headers{{"x-ms-retry-after-ms", "8000"}}, `{"error":{"code":"429","message":"Requests have exceeded call rate limit of your current OpenAI S0 pricing tier. See https://aka.ms/oai/quotaincrease"}}`, Congestion, Dimension{Requests, 0}, sec(8), true},
	{"anthropic spend", 429, nil, `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}`, Exhausted, Dimension{}, -1, false},
	{"anthropic usage limits", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2030-02-01."}}`, Exhausted, Dimension{}, -1, false},
	{"anthropic no money", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, Exhausted, Dimension{}, -1, false},
	{"anthropic too large", 413, nil, `{"type":"error","error":{"type":"request_too_large","message":"x"}}`, ClientError, Dimension{}, -1, false},
	{"gemini per minute", 429, nil, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"x/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.074824224s"}]}}`, Congestion, Dimension{Requests, minute}, 34_074_824_224, true},
	{"bedrock by type", 429, nil, `{"message":"x","__type":"com.amazon.coral#ThrottlingException"}`, Congestion, Dimension{}, -1, true},
	{"bedrock warming up", 429, headers{{"x-amzn-errortype", "ModelNotReadyException"}}, `{"message":"x"}`, Overload, Dimension{InFlight, 0}, -1, true},
	{"bedrock service quota", 400, headers{{"x-amzn-errortype", "ServiceQuotaExceededException"}}, `{"message":"x"}`, Exhausted, Dimension{}, -1, false},
	{"cohere", 429, nil, `{"message":"You are using a Trial key, which is limited to 10 API calls / minute. You can upgrade to a Production key with higher rate limits."}`, Congestion, Dimension{Requests, minute}, -1, true},
	{"cohere, the month", 429, nil, `{"message":"You are using a Trial key, which is limited to 1000 API calls / month."}`, Exhausted, Dimension{Requests, month}, -1, false},
	{"mistral", 429, nil, `{"object":"error","message":"Requests rate limit exceeded","type":"rate_limited","param":null,"code":"1300"}`, Congestion, Dimension{Requests, 0}, -1, true},
	{"ollama", 429, nil, `{"error":"too many concurrent requests"}`, Congestion, Dimension{InFlight, 0}, -1, true},
	{"words of a quota", 429, nil, `{"detail":"Monthly limit reached, upgrade your plan"}`, Exhausted, Dimension{0, month}, -1, false},
	{"words of a limit", 429, nil, `{"message":"Limit reached."}`, Exhausted, Dimension{}, -1, false},
	{"words of a rate", 429, nil, `{"message":"Rate limit reached, 20 per minute."}`, Congestion, Dimension{0, minute}, -1, true},
	{"problem details", 429, headers{{"retry-after", "4"}}, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota"}`, Congestion, Dimension{}, sec(4), true},
	{"problem details, 503", 503, nil, `{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"}`, Overload, Dimension{InFlight, 0}, -1, true},
	{"told not to retry", 429, headers{{"x-should-retry", "false"}}, openAIRequests, Congestion, Dimension{Requests, 0}, -1, false},
	{"402", 402, nil, "", Exhausted, Dimension{}, -1, false},
	{"500", 500, nil, "", Overload, Dimension{InFlight, 0}, -1, false},
	{"error null", 200, nil, `{"error":null,"choices":[]}`, OK, Dimension{}, -1, false},
}

const openAIRequests = `{"error":{"message":"x","type":"requests","param":null,"code":"rate_limit_exceeded"}}`

func TestClassify(t *testing.T) {
	for _, row := range classifyRows {
		v := Classify(Reply{Status: row.status, Headers: row.headers, Body: []byte(row.body), Wall: newYear})
		wait := v.Wait
		if !v.Told {
			wait = -1
		}
		if v.Class != row.class || v.Dimension != row.dim || wait != row.wait || v.Retry != row.retry {
			t.Errorf("%s: %v of %v, wait %d, retry %v\nwant %v of %v, wait %d, retry %v", row.name, v.Class, v.Dimension, wait, v.Retry, row.class, row.dim, row.wait, row.retry)
		}
	}
}

// Mission C3: which statuses are retried, with no word from the provider and with one.
func TestClassifyStatuses(t *testing.T) {
	retried := map[int]bool{429: true, 408: true, 502: true, 503: true, 504: true, 529: true, 498: true}
	for status := 100; status < 600; status++ {
		if v := Classify(Reply{Status: status}); v.Retry != retried[status] || (v.Class == OK) != (status < 400) {
			t.Errorf("%d: %+v", status, v)
		}
	}
	for _, status := range []int{400, 401, 403, 404, 405, 413, 415, 409, 422} {
		v := Classify(Reply{Status: status, Headers: headers{{"X-Should-Retry", "true"}}})
		if v.Class != ClientError || v.Retry != (status == 409 || status == 422) {
			t.Errorf("%d: %+v", status, v)
		}
	}
}

func TestClassifyRamp(t *testing.T) {
	for _, body := range []string{`{"error":{"code":"slow_down"}}`, `{"message":"Requests are increasing too quickly"}`} {
		if v := Classify(Reply{Status: 429, Body: []byte(body)}); !v.Ramp || v.Class != Congestion {
			t.Errorf("%s: %+v", body, v)
		}
	}
	if Classify(Reply{Status: 429}).Ramp {
		t.Error("any 429 is the ramp's")
	}
}

var (
	okReply = Reply{Status: 200, Headers: headers{{"content-type", "application/json"}, {"date", "Tue, 01 Jan 2030 00:00:00 GMT"}, {"x-ratelimit-limit-requests", "500"}, {"x-ratelimit-remaining-requests", "499"}, {"x-ratelimit-reset-requests", "120ms"}, {"x-ratelimit-limit-tokens", "30000"}, {"x-ratelimit-remaining-tokens", "29980"}, {"x-ratelimit-reset-tokens", "40ms"}},
		Body: []byte(`{"id":"chatcmpl-1","object":"chat.completion","choices":[{"message":{"content":"hello"}}]}`)}
	refusedReply = Reply{Status: 429, Headers: append(headers{{"retry-after", "6"}}, okReply.Headers...),
		Body: []byte(`{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 4351. Please try again in 5.289s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`)}
)

// The hot path does not allocate: every answer passes here.
func TestNoAllocation(t *testing.T) {
	var seen [maxObservations]Observation
	if n := testing.AllocsPerRun(100, func() { Classify(okReply); Observe(seen[:0], okReply) }); n != 0 {
		t.Errorf("%v allocations for a 200", n)
	}
}

func BenchmarkClassify(b *testing.B) {
	for name, r := range map[string]Reply{"200": okReply, "429": refusedReply} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Classify(r)
			}
		})
	}
}

func BenchmarkObserve(b *testing.B) {
	var seen [maxObservations]Observation
	b.ReportAllocs()
	for b.Loop() {
		Observe(seen[:0], okReply)
	}
}
