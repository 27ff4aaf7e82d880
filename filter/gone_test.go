// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// Who has gone is not answered, also if its time in the queue was over in another stream's callback, whether its memory is kept for others
// or there is enough of that: Envoy would give the answer to whoever is there.
func TestNobodyIsAnsweredWhoHasGone(t *testing.T) {
	for _, crowd := range []int{0, 300} {
		both(t, 1, waitPolicy, func(t *testing.T, p *filtertest.Process) {
			w := p.Worker(0)
			var others []*filtertest.Exchange
			for range crowd {
				others = append(others, w.Open(classed("a", "interactive", "other")))
			}
			w.Open(classed("a", "batch", "gpt-4o"))
			x := w.Open(classed("a", "batch", "gpt-4o"))
			r := classed("a", "batch", "gpt-4o")
			y := w.Start(r)
			for _, o := range others {
				o.Close()
			}
			if !held(x) {
				t.Fatal("it does not wait")
			}
			p.Clock += int64(6 * time.Second) // the time in the queue is over before the next tick
			y.SendBody(r.Body, true)
			x.Close()
			p.Sleep(100 * time.Millisecond)
			if x.Reply != nil {
				t.Errorf("with %d others it was answered: %s", crowd, x.Reply.Body)
			}
		})
	}
}

// What was asked of the control plane for somebody who left before its answer is not kept for ever: Envoy gives no answer to who is gone.
func TestCallsOfWhoHasGoneAreForgotten(t *testing.T) {
	m, err := module()
	if err != nil {
		t.Fatal(err)
	}
	p := process(t, m, 1, centralPolicy)
	newControlPlane(p)
	leave := func(n int) int64 {
		for i := range n {
			p.Worker(0).Open(withMini("a", "u", "plain", 100)).Close()
			if i%20 == 0 {
				p.Sleep(100 * time.Millisecond)
			}
		}
		return p.Worker(0).Memory()
	}
	before := leave(3000)
	if after := leave(9000); after > before+8<<20 {
		t.Errorf("%d MiB of memory, before 9000 calls it was %d", after>>20, before>>20)
	}
}
