// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// Where the queue is weighted classes go in the ratio of their weights, and nobody yields to another worker.
func TestWeightedOrder(t *testing.T) {
	weighted := strings.NewReplacer(`"priority":3,`, `"priority":3,"weight":"3",`, `"probe":`, `"other":`).Replace(markPolicy("0s"))
	weighted = strings.Replace(weighted, `"aging":"0s"`, `"weight":"1"`, 1)
	weighted = strings.Replace(weighted, `"classes"`, `"queue":{"order":"weighted"},"classes"`, 1)
	both(t, 2, weighted, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		w.Open(classed("a", "urgent", "gpt-4o"))
		var high, low []*filtertest.Exchange
		for range 12 {
			low, high = append(low, w.Open(classed("a", "batch", "gpt-4o"))), append(high, w.Open(classed("a", "urgent", "gpt-4o")))
		}
		p.Sleep(8100 * time.Millisecond)
		count := func(list []*filtertest.Exchange) (n int) {
			for _, x := range list {
				if x.Sent {
					n++
				}
			}
			return n
		}
		if h, l := count(high), count(low); h != 6 || l != 2 {
			t.Errorf("%d of weight 3, %d of weight 1", h, l)
		}
		p.Sleep(890 * time.Millisecond)
		p.Clock += int64(15 * time.Millisecond)
		if x := p.Worker(1).Open(classed("b", "batch", "gpt-4o")); !x.Sent {
			t.Error("another worker's lower class lets the higher one go first")
		}
	})
}

// Who asks, where the policy lets it, is told how long it waited: in an answer and in a refusal; nobody else is.
func TestSaysHowLong(t *testing.T) {
	explain := strings.Replace(waitPolicy, `"classes"`, `"explain":{"header":true},"classes"`, 1)
	asking := func(headers ...[2]string) filtertest.Request {
		r := classed("a", "batch", "gpt-4o")
		r.Headers = append(append(r.Headers, [2]string{"x-weir-explain", "1"}), headers...)
		return r
	}
	said := func(x *filtertest.Exchange) string {
		if i := slices.IndexFunc(x.AnswerHeaders(), func(h [2]string) bool { return h[0] == "x-weir-queued" }); i >= 0 {
			return x.AnswerHeaders()[i][1]
		}
		return ""
	}
	for policy, want := range map[string][3]string{explain: {"", "1.040s", "0.540s"}, waitPolicy: {}} {
		both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
			w := p.Worker(0)
			first, second := w.Open(asking()), w.Open(asking())
			third, quiet := w.Open(asking([2]string{"x-weir-deadline", "0.6s"})), w.Open(classed("a", "urgent", "other"))
			if third.Reply != nil { // it would have waited for too long
				t.Fatal(third.Reply.Headers)
			}
			p.Sleep(1100 * time.Millisecond)
			for i, x := range []*filtertest.Exchange{first, second} {
				x.Respond(200, true, [2]string{"x-weir-queued", "the provider's"})
				if got := said(x); got != want[i] {
					t.Errorf("request %d: %q, want %q", i, got, want[i])
				}
			}
			if quiet.Respond(200, true); said(quiet) != "" || second.Upstream("x-weir-explain") != "" {
				t.Error("it is said to who does not ask, or to the provider")
			}
			if third.Reply == nil || third.Reply.Headers.Get("x-weir-queued") != want[2] {
				t.Errorf("queue_timeout: %+v, want %q", third.Reply, want[2])
			}
		})
	}
}
