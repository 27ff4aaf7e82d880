// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// words is a text of n words, each a token for OpenAI's models.
func words(n int) string { return strings.TrimSpace(strings.Repeat("hello ", n)) }

// need is what a call is said to need, by the refusal that it gets where all is in use.
func need(t *testing.T, p *filtertest.Process, worker int, path, body string) (n int) {
	t.Helper()
	all := p.Worker(worker).Open(request("/openai/v1/chat/completions", "poor", `{"model":"another","max_tokens":199900,"messages":[]}`))
	defer all.Answer(400, `{}`) // gives all back
	x := p.Worker(worker).Open(request(path, "poor", body))
	if x.Reply == nil {
		t.Fatal("admitted")
	}
	if _, err := fmt.Sscan(fmt.Sprint(field(t, x.Reply.Body, "error.weir.need")), &n); err != nil {
		t.Fatalf("%v: %s", err, x.Reply.Body)
	}
	return n
}

const poorPolicy = `{"apiVersion":"weir/v1","trust":["all"],"output":{"reserve":"learned"},
	"providers":{"openai":{"upstream":"http://openai.test"},"anthropic":{"upstream":"http://anthropic.test"}},
	"limits":{"tenant":{"default":{"tpm":"1000000000","burst":"100%"},"poor":{"tpm":"200000","burst":"100%"}}}}`

// After 50 answers of a provider whose tokenizer is 30 percent off, counts are right to 3 percent, in another worker as well, whether
// calls are counted or only bounded.
func TestCalibration(t *testing.T) {
	for _, row := range []struct{ path, model, usage string }{
		{"/openai/v1/chat/completions", "qwen3-30b", `{"usage":{"prompt_tokens":%d,"completion_tokens":5}}`},
		{"/openai/v1/chat/completions", "gpt-4o", `{"usage":{"prompt_tokens":%d,"completion_tokens":5}}`},
		{"/anthropic/v1/messages", "claude-sonnet-4", `{"usage":{"input_tokens":%d,"cache_read_input_tokens":7,"output_tokens":5}}`},
	} {
		both(t, 2, poorPolicy, func(t *testing.T, p *filtertest.Process) {
			r := rand.New(rand.NewPCG(1, 2))
			body := func(n int) string {
				return fmt.Sprintf(`{"model":%q,"max_tokens":100000,"messages":[{"role":"user","content":%q}]}`, row.model, words(n))
			}
			before := need(t, p, 1, row.path, body(5000)) - 100_000
			for range 50 {
				n := 50 + r.IntN(2000)
				x := p.Worker(0).Open(request(row.path, "rich", body(n)))
				actual := (n + 7) * before * 13 / 10 / 5007
				if row.model == "claude-sonnet-4" {
					actual -= 7 // read from a cache
				}
				x.Answer(200, fmt.Sprintf(row.usage, actual))
				p.Sleep(100 * time.Millisecond)
			}
			p.Sleep(2 * time.Second)
			after := need(t, p, 1, row.path, body(5000))
			if after > 10_000+before { // the output is learned, too
				t.Errorf("%s: the output is not learned: %d", row.model, after)
			}
			after = need(t, p, 1, row.path, strings.Replace(body(5000), `"max_tokens":100000`, `"max_tokens":1`, 1)) - 1
			if off := float64(after)/(float64(before)*1.3) - 1; off > 0.03 || off < -0.03 {
				t.Errorf("%s: %d before, %d after, off by %.1f %%", row.model, before, after, off*100)
			}
		})
	}
}

// Errors of counts are metrics: how many were within what, and the two sums that give the bias.
func TestErrorsAreMetrics(t *testing.T) {
	both(t, 1, poorPolicy, func(t *testing.T, p *filtertest.Process) {
		x := p.Worker(0).Open(request("/openai/v1/chat/completions", "rich", `{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":"`+words(93)+`"}]}`))
		x.Answer(200, `{"usage":{"prompt_tokens":96,"completion_tokens":5}}`)
		p.Sleep(2 * time.Second)
		for name, want := range map[string]int{
			"weir_input_errors_total.how.exact.within.5": 1, "weir_input_counted_total.how.exact": 100, "weir_input_actual_total.how.exact": 96,
		} {
			if got := p.Metric(name); got != want {
				t.Errorf("%s is %d, want %d: %v", name, got, want, p.Metrics)
			}
		}
	})
}

// A provider that ceases to say what was used: of a call that relied on it the input counts by its length, of all later ones it
// counts as it was counted.
func TestUsageThatIsNotSaid(t *testing.T) {
	const calls, output = 40, 100
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		call := func(tenant, answer string) {
			x := p.Worker(0).Open(request("/openai/v1/chat/completions", tenant, `{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"`+words(93)+`"}]}`))
			x.Answer(200, answer)
		}
		for range 150 {
			call("a", `{"usage":{"prompt_tokens":100,"completion_tokens":5}}`)
			p.Sleep(500 * time.Millisecond)
		}
		p.Sleep(time.Hour)
		for range calls {
			call("a", `{"id":"abcd","text":"`+strings.Repeat("a", 392)+`"}`)
		}
		if got, most := used(t, p, "a"), int64(calls*(100+output)+100); got < calls*(100+output) || got > most {
			t.Errorf("%d tokens count, want %d to %d", got, calls*(100+output), most)
		}
	})
}

// Tools say no usage, and nobody expects it of them: calls of models are not counted for that.
func TestToolsSayNoUsage(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		call := func() {
			x := p.Worker(0).Open(request("/openai/v1/chat/completions", "a", `{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"`+words(93)+`"}]}`))
			x.Answer(200, `{"usage":{"prompt_tokens":100,"completion_tokens":5}}`)
			p.Sleep(2 * time.Second) // limits are hardly used
		}
		for range 150 {
			call()
		}
		before := p.Metric("weir_input_errors_total.")
		for range 50 {
			p.Worker(0).Open(request("/tool/search", "a", `{}`)).Answer(200, `{"found":1}`)
			call()
		}
		if n := p.Metric("weir_input_errors_total.") - before; n > 2 {
			t.Errorf("%d of 50 calls were counted", n)
		}
	})
}
