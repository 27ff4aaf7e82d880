// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

const moneyPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://MOCK"}
prices: {"gpt-4o*": {input: 1, output: 10}}
limits:
  tenant:
    spender: {usd_per_day: 0.01, burst: 100%}
    daily: {rpd: 3, reset: Asia/Kolkata}
`

// A limit in money is spent by what calls use, and one that begins anew at midnight says how long that is.
func TestMoneyAndDays(t *testing.T) {
	t.Parallel()
	s := startStack(t, moneyPolicy)
	ask := func(c call) (*http.Response, string) {
		resp, err := http.DefaultClient.Do(c.request(s.proxy))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp, string(body)
	}
	n := 0
	resp, body := ask(call{tenant: "spender", output: 100, input: inputOfHi})
	for ; resp.StatusCode == 200 && n < 50; n++ { // each is a thousandth of a dollar and a little for the input
		time.Sleep(50 * time.Millisecond) // for its settlement
		resp, body = ask(call{tenant: "spender", output: 100, input: inputOfHi})
	}
	if n != 9 || resp.Header.Get("x-weir-reason") != "quota_exhausted" || resp.Header.Get("x-weir-dimension") != "usd_per_day" || !strings.Contains(body, "$0.01") {
		t.Errorf("%d calls for a cent, then %v %s", n, resp.Header, body)
	}
	for range 3 {
		if resp, body := ask(call{tenant: "daily", output: 1}); resp.StatusCode != 200 {
			t.Fatalf("%d: %s", resp.StatusCode, body)
		}
	}
	resp, body = ask(call{tenant: "daily", output: 1})
	midnight := time.Now().UTC().Add(5*time.Hour + 30*time.Minute).Truncate(24 * time.Hour).Add(24*time.Hour - 5*time.Hour - 30*time.Minute)
	wait, _ := strconv.ParseFloat(resp.Header.Get("retry-after"), 64)
	if until := time.Until(midnight).Seconds(); resp.Header.Get("x-weir-reason") != "quota_exhausted" || wait < until || wait > 1.2*until+10 {
		t.Errorf("after 3 of 3 a day, %.0f s before midnight: retry-after %v, %s", until, wait, body)
	}
}

const askPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://MOCK", stream: {include_usage: add}}
limits: {tenant: {default: {tpm: 100_000}}}
`

// A stream that would not say its usage is asked to, and the caller does not see it.
func TestUsageIsAskedFor(t *testing.T) {
	t.Parallel()
	s := startStack(t, askPolicy)
	for _, version := range []int{1, 2} {
		resp, err := client(version).Do(call{tenant: "a", output: 50, input: inputOfHi, stream: true}.request(s.proxy))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || strings.Contains(string(body), "prompt_tokens") || !strings.HasSuffix(string(body), "data: [DONE]\n\n") {
			t.Errorf("HTTP/%d: %d %v %.300q", version, resp.StatusCode, err, body)
		}
	}
	eventually(t, 5*time.Second, func() (bool, string) {
		_, stats := get(t, "http://"+s.admin+"/stats?filter=weir_charges")
		return strings.Contains(stats, "source.usage: 2"), stats
	})
}
