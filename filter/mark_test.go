// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
	"pgregory.net/rapid"
)

// markPolicy admits one request a second at gpt-*; the lowest class does not wait, the others do.
func markPolicy(aging string) string {
	return `{"apiVersion":"weir/v1","trust":["all"],
	"providers":{"openai":{"upstream":"http://openai.test","models":{"gpt-*":{"rps":"1","burst":"100%","window":"continuous"},"*":{"rps":"100"}}}},
	"limits":{"tenant":{"slow":{"rps":"1","burst":"100%"},"default":{"rps":"100"}}},
	"classes":{"urgent":{"priority":3,"on_limit":"queue","wait":"60s"},"batch":{"priority":2,"on_limit":"queue","wait":"60s","aging":"` + aging + `"},
		"probe":{"priority":1}}}`
}

// Priority holds across workers: who waits in a higher class goes before who waits, or comes, in a lower one elsewhere.
func TestPriorityAcrossWorkers(t *testing.T) {
	both(t, 3, markPolicy("0s"), func(t *testing.T, p *filtertest.Process) {
		p.Worker(0).Open(classed("a", "batch", "gpt-4o"))
		low := p.Worker(0).Open(classed("a", "batch", "gpt-4o")) // the first worker to tick
		high := p.Worker(1).Open(classed("a", "urgent", "gpt-4o"))
		p.Sleep(980 * time.Millisecond)
		p.Clock += int64(21 * time.Millisecond) // there is room again, and no tick has been yet
		come := p.Worker(2).Open(classed("a", "batch", "gpt-4o"))
		probe := p.Worker(2).Open(classed("a", "probe", "gpt-4o"))
		p.Sleep(10 * time.Millisecond)
		if low.Sent || come.Sent || !high.Sent {
			t.Errorf("low %v, just coming %v, high %v", low.Sent, come.Sent, high.Sent)
		}
		if r := probe.Reply; r == nil || r.Headers.Get("x-weir-reason") != "limit_exceeded" || r.Headers.Get("x-weir-tier") != "provider" || r.Headers.Get("ratelimit") == "" {
			t.Errorf("who does not wait: %+v", r)
		}
		p.Sleep(1120 * time.Millisecond)
		if low.Sent == come.Sent {
			t.Errorf("a second later: low %v, come %v", low.Sent, come.Sent)
		}
	})
}

// What a worker says that died is over after two ticks.
func TestMarkOfTheDead(t *testing.T) {
	both(t, 2, markPolicy("0s"), func(t *testing.T, p *filtertest.Process) {
		p.Worker(1).Open(classed("a", "batch", "gpt-4o"))
		low, high := p.Worker(1).Open(classed("a", "batch", "gpt-4o")), p.Worker(0).Open(classed("a", "urgent", "gpt-4o"))
		p.Sleep(980 * time.Millisecond)
		p.Worker(0).Dead = true
		p.Sleep(20 * time.Millisecond)
		if low.Sent || high.Sent {
			t.Fatal("the mark must live for two ticks")
		}
		p.Sleep(40 * time.Millisecond)
		if !low.Sent {
			t.Error("it still lets the dead go first")
		}
	})
}

// Who is refused because its class does not wait makes nobody yield: it is not there any more.
func TestMarkOfWhoDoesNotWait(t *testing.T) {
	policy := strings.Replace(markPolicy("0s"), `"batch":{"priority":2,"on_limit":"queue","wait":"60s","aging":"0s"}`, `"batch":{"priority":2}`, 1)
	policy = strings.Replace(policy, `"probe":{"priority":1}`, `"probe":{"priority":1,"on_limit":"queue","wait":"60s"}`, 1)
	both(t, 2, policy, func(t *testing.T, p *filtertest.Process) {
		p.Worker(0).Open(classed("a", "probe", "gpt-4o"))
		low, other := p.Worker(0).Open(classed("a", "probe", "gpt-4o")), p.Worker(1).Open(classed("a", "probe", "gpt-4o"))
		p.Sleep(980 * time.Millisecond)
		if x := p.Worker(1).Open(classed("a", "batch", "gpt-4o")); reason(x) != "limit_exceeded" || !held(low) || !held(other) {
			t.Fatalf("%s, %v %v", reason(x), low.Sent, other.Sent)
		}
		p.Sleep(20 * time.Millisecond) // the first worker is asked first
		if !low.Sent {
			t.Error("it lets go first who was refused")
		}
	})
}

// Who leaves holds up nobody for longer than a tick.
func TestMarkOfWhoHasLeft(t *testing.T) {
	both(t, 2, markPolicy("0s"), func(t *testing.T, p *filtertest.Process) {
		p.Worker(0).Open(classed("a", "batch", "gpt-4o"))
		high := p.Worker(0).Open(classed("a", "urgent", "gpt-4o"))
		p.Sleep(980 * time.Millisecond)
		high.Close()
		p.Sleep(20 * time.Millisecond)
		if x := p.Worker(1).Open(classed("a", "batch", "gpt-4o")); !x.Sent {
			t.Error("it lets go first who is not there")
		}
	})
}

// A lower class lets others go first for as long as its aging says, no longer.
func TestYieldingEnds(t *testing.T) {
	both(t, 2, markPolicy("3s"), func(t *testing.T, p *filtertest.Process) {
		p.Worker(0).Open(classed("a", "batch", "gpt-4o"))
		low := p.Worker(0).Open(classed("a", "batch", "gpt-4o"))
		for i := range 5 {
			for range 2 {
				p.Worker(1).Open(classed("a", "urgent", "gpt-4o"))
			}
			p.Sleep(1100 * time.Millisecond)
			if low.Sent != (i >= 2) {
				t.Fatalf("after %d times 1.1 s: sent %v", i+1, low.Sent)
			}
		}
	})
}

// Who waits for a limit of its own makes nobody yield, here or elsewhere.
func TestOwnLimitMakesNobodyYield(t *testing.T) {
	both(t, 2, markPolicy("0s"), func(t *testing.T, p *filtertest.Process) {
		p.Worker(0).Open(classed("slow", "urgent", "other"))
		if x := p.Worker(0).Open(classed("slow", "urgent", "other")); !held(x) {
			t.Fatalf("%+v", x.Reply)
		}
		if x := p.Worker(1).Open(classed("a", "batch", "other")); !x.Sent {
			t.Errorf("%+v", x.Reply)
		}
	})
}

// Requests under a policy without classes that wait cost no access to shared data more, others at most one read.
func TestCostOfMarks(t *testing.T) {
	gets := func(policy, class string) (n int) {
		p, err := filtertest.NewProcess(nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Configure([]byte(policy)); err != nil {
			t.Fatal(err)
		}
		for range 10 { // warm
			p.Worker(0).Open(classed("a", class, "other"))
		}
		p.Sleep(20 * time.Millisecond)
		before, sets := p.Store.Gets, p.Store.Sets
		p.Worker(0).Open(classed("a", class, "other"))
		return p.Store.Gets - before + 1000*(p.Store.Sets-sets)
	}
	without := `{"apiVersion":"weir/v1","trust":["all"],
	"providers":{"openai":{"upstream":"http://openai.test","models":{"gpt-*":{"rps":"1","burst":"100%"},"*":{"rps":"100"}}}},
	"limits":{"tenant":{"slow":{"rps":"1","burst":"100%"},"default":{"rps":"100"}}},"classes":{"urgent":{"priority":3},"batch":{"priority":2}}}`
	least := gets(without, "batch")
	if n := gets(markPolicy("0s"), "urgent"); n != least {
		t.Errorf("the highest class: %d accesses, %d without", n, least)
	}
	if n := gets(markPolicy("0s"), "batch"); n != least+1 {
		t.Errorf("a lower class: %d accesses, %d without", n, least)
	}
}

// A marked is a request of the property below.
type marked struct {
	*filtertest.Exchange
	worker, class int
	came          int64
	over          bool
}

// Whatever comes and goes in four workers, of which any may die: nobody is sent while another worker has somebody waiting in a
// higher class, unless that worker is dead or it has aged; and nobody waits for ever.
func TestNoInversions(t *testing.T) {
	classes := []string{"urgent", "batch", "probe"}
	rapid.Check(t, func(t *rapid.T) {
		const workers = 4
		p, err := filtertest.NewProcess(nil, workers)
		if err != nil {
			t.Fatal(err)
		}
		aging := time.Duration(rapid.SampledFrom([]int{0, 2}).Draw(t, "aging")) * time.Second
		if err := p.Configure([]byte(markPolicy(aging.String()))); err != nil {
			t.Fatal(err)
		}
		var all []*marked
		died := map[int]int64{}
		check := func(newcomer *marked, step func()) {
			before := map[*marked]bool{}
			for _, x := range all {
				before[x] = held(x.Exchange) && !x.over
			}
			step()
			for _, x := range all {
				if !x.Sent || !before[x] && x != newcomer {
					continue
				}
				for _, y := range all {
					if before[y] && held(y.Exchange) && y.class < x.class && y.worker != x.worker && died[y.worker] == 0 &&
						(aging == 0 || p.Clock-x.came < int64(aging)) {
						t.Fatalf("class %d of worker %d went before class %d of worker %d", x.class, x.worker, y.class, y.worker)
					}
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 20).Draw(t, "kind"); {
			case k < 8:
				x := &marked{worker: rapid.IntRange(0, workers-1).Draw(t, "worker"), class: rapid.IntRange(0, 2).Draw(t, "class"), came: p.Clock}
				if died[x.worker] == 0 {
					check(x, func() {
						x.Exchange = p.Worker(x.worker).Open(classed(fmt.Sprint("t", len(all)), classes[x.class], "gpt-4o"))
						all = append(all, x)
					})
				}
			case k < 10 && len(all) > 0:
				x := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
				if !x.over && died[x.worker] == 0 {
					x.over = true
					x.Close()
				}
			case k == 10 && len(died) < workers-1:
				w := rapid.IntRange(0, workers-1).Draw(t, "dead")
				p.Worker(w).Dead, died[w] = true, p.Clock
			default:
				for range rapid.IntRange(1, 30).Draw(t, "ticks") {
					check(nil, func() { p.Sleep(20 * time.Millisecond) })
				}
			}
		}
		p.Sleep(61 * time.Second)
		if i := slices.IndexFunc(all, func(x *marked) bool { return held(x.Exchange) && !x.over && died[x.worker] == 0 }); i >= 0 {
			t.Fatalf("%d waits for ever: %+v", i, all[i])
		}
	})
}
