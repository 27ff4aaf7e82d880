// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// Whoever has begun to wait counts once when that is over: sent, out of time, or gone. Who goes at once does not count.
func TestWaitsAreMetrics(t *testing.T) {
	text := strings.ReplaceAll(waitPolicy, `"batch"`, `"batch.low"`)
	both(t, 1, text, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		w.Open(classed("a", "batch.low", "gpt-4o"))
		sent, gone := w.Open(classed("a", "urgent", "gpt-4o")), w.Open(classed("a", "batch.low", "gpt-4o"))
		late := classed("a", "batch.low", "gpt-4o")
		late.Headers = append(late.Headers, [2]string{"x-weir-deadline", "3s"})
		out := w.Open(late)
		if !held(sent) || !held(gone) || !held(out) {
			t.Fatal("they do not wait")
		}
		p.Sleep(200 * time.Millisecond)
		gone.Close()
		p.Sleep(900 * time.Millisecond)
		w.Open(classed("a", "urgent", "gpt-4o")) // goes before
		w.Open(classed("a", "urgent", "gpt-4o"))
		p.Sleep(3 * time.Second)
		for name, want := range map[string]int{
			"weir_queued_total.class.batch_low": 2, "weir_queued_total.class.urgent": 3,
			"weir_queue_waits_total.class.batch_low.within.300ms": 1, "weir_queue_waits_total.class.batch_low.within.3s": 1,
			"weir_queue_waits_total.class.urgent.within.1s": 1, "weir_queue_waits_total.class.urgent.within.3s": 2, "weir_queue_waits_total.class.batch_low": 2,
			"weir_queue_waits_total.class.urgent": 3,
		} {
			if got := p.Metric(name); got != want {
				t.Errorf("%s is %d, want %d: %v", name, got, want, p.Metrics)
			}
		}
	})
}

// A request that says that it was sent before counts as that, also where no budget of retries is.
func TestRepeatsAreMetrics(t *testing.T) {
	both(t, 1, poorPolicy, func(t *testing.T, p *filtertest.Process) {
		for _, h := range [][2]string{{"x-stainless-retry-count", "0"}, {"x-stainless-retry-count", "2"}, {"x-weir-retry", "1"}, {"x-other", "1"}} {
			r := request("/openai/v1/chat/completions", "rich", `{"model":"gpt-4o","max_tokens":1,"messages":[]}`)
			r.Headers = append(r.Headers, h)
			if x := p.Worker(0).Open(r); !x.Sent {
				t.Fatalf("%+v", x.Reply)
			}
		}
		if got := p.Metric("weir_repeated_requests_total"); got != 2 {
			t.Errorf("got %d: %v", got, p.Metrics)
		}
	})
}
