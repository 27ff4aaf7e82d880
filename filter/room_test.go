// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
	"pgregory.net/rapid"
)

// roomPolicy lets seven wait, with 2,000 bytes in all.
const roomPolicy = `{"apiVersion":"weir/v1","trust":["all"],
	"providers":{"openai":{"upstream":"http://openai.test","models":{"gpt-*":{"rps":"1","burst":"100%"},"o*":{"rps":"1","burst":"100%"},"one":{"in_flight":"1"}}}},
	"classes":{"batch":{"on_limit":"queue","wait":"60s"}},"queue":{"entries":"7","bytes":"2000"}}`

func sized(model string, bytes int) filtertest.Request {
	body := fmt.Sprintf(`{"model":%q,"max_tokens":1,"messages":[]`, model)
	return request("/openai/v1/chat/completions", "a", body+strings.Repeat(" ", max(bytes-len(body)-1, 0))+"}")
}

func reason(x *filtertest.Exchange) string {
	if x.Reply == nil {
		return ""
	}
	return x.Reply.Headers.Get("x-weir-reason")
}

// What waits is bounded over all workers; the places of a worker that died come back, and not at once.
func TestQueueIsBoundedOverAllWorkers(t *testing.T) {
	both(t, 3, roomPolicy, func(t *testing.T, p *filtertest.Process) {
		var waiting []*filtertest.Exchange
		p.Worker(0).Open(sized("gpt-4o", 60))
		for i := range 7 {
			if x := p.Worker(i).Open(sized("gpt-4o", 60)); held(x) {
				waiting = append(waiting, x)
			}
		}
		if x := p.Worker(1).Open(sized("gpt-4o", 60)); len(waiting) != 7 || reason(x) != "queue_full" {
			t.Fatalf("%d wait, one more: %s", len(waiting), reason(x))
		}
		p.Worker(0).Dead = true // it held three
		waiting[1].Close()
		waiting[2].Close()
		p.Sleep(100 * time.Millisecond)
		for i := range 3 {
			if x := p.Worker(1).Open(sized("gpt-4o", 60)); held(x) != (i < 2) {
				t.Errorf("after two have left, number %d: held %v %s", i, held(x), reason(x))
			}
		}
		p.Sleep(4700 * time.Millisecond)
		free := func() (n int) {
			for range 10 {
				x := p.Worker(2).Open(sized("o1", 60))
				if held(x) {
					n++
					defer x.Close()
				}
			}
			return n
		}
		if n := free(); n > 7-3 {
			t.Errorf("%d free places, though nobody can know that the worker is dead", n)
		}
		p.Sleep(60 * time.Second) // all have been sent
		if n := free(); n != 6 && n != 7 {
			t.Errorf("%d free places in the end", n)
		}
	})
}

// A place is held for as long as somebody waits in it.
func TestPlacesAreRenewed(t *testing.T) {
	both(t, 2, roomPolicy, func(t *testing.T, p *filtertest.Process) {
		for range 8 {
			p.Worker(0).Open(sized("one", 60))
		}
		p.Sleep(30 * time.Second)
		if x := p.Worker(1).Open(sized("one", 60)); reason(x) != "queue_full" {
			t.Errorf("after half a minute an eighth: %q, held %v", reason(x), held(x))
		}
	})
}

// Whatever comes, leaves, is sent and dies: what waits never exceeds the bounds, and no place is lost.
func TestRoomHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const workers = 4
		p, err := filtertest.NewProcess(nil, workers)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Configure([]byte(roomPolicy)); err != nil {
			t.Fatal(err)
		}
		type waiter struct {
			*filtertest.Exchange
			bytes, worker int
			over          bool
		}
		var all []*waiter
		dead := map[int]bool{}
		check := func() {
			n, bytes := 0, 0
			for _, x := range all {
				if held(x.Exchange) && !x.over && !dead[x.worker] {
					n++
					bytes += x.bytes
				}
			}
			if n > 7 || bytes > 2000 {
				t.Fatalf("%d wait with %d bytes", n, bytes)
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 11).Draw(t, "kind"); {
			case k < 6:
				x := &waiter{bytes: rapid.IntRange(60, 900).Draw(t, "bytes"), worker: rapid.IntRange(0, workers-1).Draw(t, "worker")}
				if !dead[x.worker] {
					x.Exchange = p.Worker(x.worker).Open(sized(rapid.SampledFrom([]string{"gpt-4o", "o1"}).Draw(t, "model"), x.bytes))
					all = append(all, x)
				}
			case k < 9 && len(all) > 0:
				if x := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]; !dead[x.worker] && !x.over {
					x.over = true
					x.Close()
				}
			case k == 9 && len(dead) < workers-1:
				w := rapid.IntRange(0, workers-1).Draw(t, "dead")
				p.Worker(w).Dead, dead[w] = true, true
			default:
				p.Sleep(time.Duration(rapid.IntRange(1, 3000).Draw(t, "sleep")) * time.Millisecond)
			}
			check()
		}
		p.Sleep(70 * time.Second)
		w := 0
		for dead[w] {
			w++
		}
		p.Worker(w).Open(sized("gpt-4o", 60))
		for i := range 8 {
			if x := p.Worker(w).Open(sized("gpt-4o", 60)); held(x) != (i < 7) {
				t.Fatalf("place %d of 7 is lost: %s", i, reason(x))
			}
		}
	})
}
