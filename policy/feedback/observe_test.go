// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"slices"
	"testing"
)

var date = [2]string{"date", "Tue, 01 Jan 2030 00:00:00 GMT"}

func TestObserve(t *testing.T) {
	for _, row := range []struct {
		name    string
		headers headers
		want    []Observation
	}{
		{"openai", okReply.Headers, []Observation{{Dimension: Dimension{Requests, 0}, Limit: 500, Remaining: 499, Reset: 120e6}, {Dimension: Dimension{Tokens, 0}, Limit: 30000, Remaining: 29980, Reset: 40e6}}},
		{"openai, project", headers{{"x-ratelimit-limit-project-tokens", "10"}, {"x-ratelimit-reset-project-tokens", "1h2m3.5s"}}, []Observation{{Dimension: Dimension{Tokens, 0}, Scope: "project", Limit: 10, Remaining: -1, Reset: sec(3723.5)}}},
		{"azure, seconds", headers{{"x-ratelimit-remaining-tokens", "5"}, {"x-ratelimit-reset-tokens", "37"}}, []Observation{{Dimension: Dimension{Tokens, 0}, Limit: -1, Remaining: 5, Reset: sec(37)}}},
		{"azure, sentinels", headers{{"x-ratelimit-limit-tokens", "-1"}, {"x-ratelimit-remaining-tokens", "-1"}, {"x-ratelimit-reset-tokens", "0"}}, nil},
		{"anthropic", headers{date, {"anthropic-ratelimit-input-tokens-limit", "80000"}, {"anthropic-ratelimit-input-tokens-remaining", "79000"}, {"anthropic-ratelimit-input-tokens-reset", "2030-01-01T00:00:01Z"}}, []Observation{{Dimension: Dimension{InputTokens, minute}, Limit: 80000, Remaining: 79000, Reset: second}}},
		{"cerebras, day", headers{{"x-ratelimit-limit-requests-day", "14400"}, {"x-ratelimit-remaining-requests-day", "14399"}, {"x-ratelimit-reset-requests-day", "33011.382867"}}, []Observation{{Dimension: Dimension{Requests, day}, Limit: 14400, Remaining: 14399, Reset: 33011382867000}}},
		{"mistral", headers{{"x-ratelimit-limit-req-minute", "30"}, {"x-ratelimit-remaining-req-minute", "29"}}, []Observation{{Dimension: Dimension{Requests, minute}, Limit: 30, Remaining: 29, Reset: -1}}},
		{"openrouter, ms", headers{date, {"X-RateLimit-Limit", "20"}, {"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "1893456060000"}}, []Observation{{Limit: 20, Remaining: 0, Reset: minute}}},
		{"envoy, draft 3", headers{{"x-ratelimit-limit", `10, 10;w=1;name="x", 50;w=60`}, {"x-ratelimit-remaining", "4"}, {"x-ratelimit-reset", "1"}}, []Observation{{Dimension: Dimension{0, second}, Limit: 10, Remaining: 4, Reset: second}}},
		{"draft 6", headers{{"RateLimit-Limit", "100"}, {"RateLimit-Remaining", "200"}, {"RateLimit-Reset", "30"}}, []Observation{{Limit: 100, Remaining: 100, Reset: 30 * second}}},
		{"draft 7", headers{{"RateLimit", "limit=100, remaining=50, reset=30"}, {"RateLimit-Policy", "10;w=1, 100;w=60"}}, []Observation{{Dimension: Dimension{0, minute}, Limit: 100, Remaining: 50, Reset: 30 * second}}},
		{"draft 9", headers{{"RateLimit-Policy", `"burst";q=100;w=60,"daily";q=1000;w=86400;qu="requests", "b";q=9;qu="content-bytes";pk=:AA==:`}, {"RateLimit", `"burst";r=50;t=30`}},
			[]Observation{{Dimension: Dimension{0, minute}, Scope: "burst", Limit: 100, Remaining: 50, Reset: 30 * second}, {Dimension: Dimension{Requests, day}, Scope: "daily", Limit: 1000, Remaining: -1, Reset: -1}}},
		{"draft 9, not well-formed", headers{{"RateLimit", `"burst";r=50;t=30,`}}, nil},
		{"draft 9, cut off", headers{{"RateLimit", `"burst";r=50;t=30, "da`}}, nil},
		{"unified", headers{date, {"anthropic-ratelimit-unified-5h-status", "allowed"}, {"anthropic-ratelimit-unified-5h-reset", "1893456180"}}, []Observation{{Dimension: Dimension{0, 5 * hour}, Scope: "unified", Limit: -1, Remaining: -1, Reset: 180 * second}}},
		{"first of two", headers{{"x-ratelimit-limit-tokens", "5"}, {"x-ratelimit-limit-tokens", "9"}}, []Observation{{Dimension: Dimension{Tokens, 0}, Limit: 5, Remaining: -1, Reset: -1}}},
		{"none", headers{{"x-ratelimit-user", "me"}, {"content-type", "x"}}, nil},
	} {
		got := Observe(nil, Reply{Status: 200, Headers: row.headers, Wall: newYear})
		if !slices.Equal(got, row.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", row.name, got, row.want)
		}
	}
}

func TestObserveIsBounded(t *testing.T) {
	var h headers
	for i := range 100 {
		h = append(h, [2]string{"x-ratelimit-limit-" + string(rune('a'+i%26)) + string(rune('a'+i/26)), "1"})
	}
	if n := len(Observe(nil, Reply{Headers: h})); n != maxObservations {
		t.Errorf("%d observations", n)
	}
}

func TestParseReset(t *testing.T) {
	for _, row := range []struct {
		s    string
		want int64 // -1 for none
	}{
		{"1s", second}, {"6m0s", 360 * second}, {"120ms", 120e6}, {"1h2m3.5s", 3723_500_000_000}, {"7.66s", 7660e6}, {"2d", 2 * day}, {"1.0000000001", second + 1},
		{"5", 5 * second}, {"0.503", 503e6}, {"0", 0}, {"1893456029", 29 * second}, {"1893456029.5", 30 * second}, {"1893456029000", 29 * second},
		{"2030-01-01T00:00:29Z", 29 * second}, {"2030-01-01T01:00:29+01:00", 29 * second}, {"Tue, 01 Jan 2030 00:00:29 GMT", 29 * second}, {"Tuesday, 01-Jan-30 00:00:29 GMT", 29 * second}, {"Tue Jan  1 00:00:29 2030", 29 * second},
		{"1600000000", 0}, {"2020-01-01T00:00:00Z", 0}, {"999999999", MaxWait}, {"1e400", MaxWait}, {"1e1", 10 * second}, {"99999999999999999999999", MaxWait}, {"9999999h", MaxWait},
		{"", -1}, {"-1", -1}, {"NaN", -1}, {"inf", -1}, {"soon", -1}, {"1s junk", -1}, {"1x", -1}, {"s", -1}, {"1.2.3", -1}, {"0x10", -1}, {"1_000", -1}, {"9999-12-31T00:00:00Z", -1}, {"1e", -1},
	} {
		got, ok := parseReset(row.s, newYear)
		if !ok {
			got = -1
		}
		if got != row.want {
			t.Errorf("%q is %d, want %d", row.s, got, row.want)
		}
	}
}

func TestDimensionNames(t *testing.T) {
	for d, want := range map[Dimension]string{{Requests, minute}: "rpm", {Requests, day}: "rpd", {Tokens, minute}: "tpm", {InputTokens, minute}: "itpm", {OutputTokens, minute}: "otpm",
		{InFlight, 0}: "in_flight", {Tokens, 0}: "tokens", {Unknown, 0}: "unknown", {Requests, month}: "requests per 720h0m0s", {Requests, second}: "rps"} {
		if d.String() != want {
			t.Errorf("%+v is %q, want %q", d, d, want)
		}
	}
}
