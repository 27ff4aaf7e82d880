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

// sharePolicy splits 600 requests a minute, of which 150 may come at once: a second of the three classes is 5, 3 and 2 requests.
const sharePolicy = `{"apiVersion":"weir/v1","trust":["all"],
	"providers":{"openai":{"upstream":"http://openai.test","models":{"gpt-*":{"rpm":"600","window":"continuous"}}}},
	"classes":{"interactive":{"share":"50%","priority":3},"batch":{"share":"30%","priority":2,"on_limit":"queue","wait":"60s"},"probe":{"share":"20%","priority":1BORROW}}}`

// flood sends as many requests of each class as pass, for some time, and counts them.
func flood(p *filtertest.Process, d time.Duration, classes ...string) map[string]int {
	sent := map[string]int{}
	for end := p.Clock + int64(d); p.Clock < end; p.Sleep(20 * time.Millisecond) {
		for i, class := range classes {
			for {
				x := p.Worker(i).Open(classed(fmt.Sprint(class, p.Clock), class, "gpt-4o"))
				if x.Sent {
					sent[class]++
					continue
				}
				x.Close()
				break
			}
		}
	}
	return sent
}

func within(n, want, most int) bool { return n >= want-most && n <= want+most }

// Each class has its share whatever the others do, what one does not use is lent, unless it is not to be, and it has its own back
// at once when it wants it.
func TestShares(t *testing.T) {
	for _, keep := range []bool{false, true} {
		policy := strings.Replace(sharePolicy, "BORROW", map[bool]string{true: `,"borrow":false`}[keep], 1)
		both(t, 2, policy, func(t *testing.T, p *filtertest.Process) {
			flood(p, 30*time.Second, "batch", "probe", "interactive") // the bursts
			all := flood(p, 10*time.Second, "probe", "batch", "interactive")
			if !within(all["interactive"], 50, 1) || !within(all["batch"], 30, 1) || !within(all["probe"], 20, 1) {
				t.Errorf("all want all: %v, the shares are 50, 30 and 20", all)
			}
			flood(p, 30*time.Second, "batch") // the others' own buckets fill first
			want := map[bool]int{false: 100, true: 80}[keep]
			if lent := flood(p, 10*time.Second, "batch"); !within(lent["batch"], want, 1) {
				t.Errorf("alone: %v, want %d", lent, want)
			}
			back := flood(p, 10*time.Second, "batch", "interactive")
			if back["interactive"] < 50+30 {
				t.Errorf("back again, interactive has %v, which is not its share and its burst", back)
			}
		})
	}
}

// Who waits for its class's part holds up no other class, higher or lower.
func TestOwnShareHoldsUpNobody(t *testing.T) {
	both(t, 1, strings.Replace(sharePolicy, "BORROW", "", 1), func(t *testing.T, p *filtertest.Process) {
		flood(p, 30*time.Second, "batch") // with all that is lent
		x := p.Worker(0).Open(classed("b", "batch", "gpt-4o"))
		for x.Sent {
			x = p.Worker(0).Open(classed("b", "batch", "gpt-4o"))
		}
		for _, class := range []string{"interactive", "probe"} {
			if y := p.Worker(0).Open(classed("a", class, "gpt-4o")); !y.Sent {
				t.Errorf("class %s: %+v", class, y.Reply)
			}
		}
		p.Sleep(400 * time.Millisecond) // its own rate is three a second
		if !x.Sent {
			t.Error("the one that waited did not go")
		}
	})
}

// What a call of a class did not use comes back to the class.
func TestShareIsSettled(t *testing.T) {
	policy := strings.NewReplacer("BORROW", `,"borrow":false`, `"rpm":"600"`, `"tpm":"60000"`).Replace(sharePolicy)
	both(t, 2, policy, func(t *testing.T, p *filtertest.Process) {
		ask := func(i int) *filtertest.Exchange {
			r := request("/openai/v1/chat/completions", fmt.Sprint("t", i), `{"model":"gpt-4o","max_tokens":1400,"messages":[]}`)
			r.Headers = append(r.Headers, [2]string{"x-priority", "probe"})
			return p.Worker(i).Open(r)
		}
		for i := range 200 { // far more than there is in all, had it not come back
			x := ask(i)
			if !x.Sent {
				t.Fatalf("call %d: %+v", i, x.Reply)
			}
			switch i % 3 {
			case 0:
				x.Answer(400, `{}`)
			case 1:
				x.Answer(200, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
			default:
				x.Answer(429, `{}`)
			}
			p.Sleep(20 * time.Millisecond)
		}
	})
}

// Whatever classes ask in three workers: together they never get more than the limit, and none is refused what is its own.
func TestSharesOverWorkers(t *testing.T) {
	const rate, burst = 10.0, 149.0 // a second; at once, less what may bunch up
	classes, shares := []string{"interactive", "batch", "probe"}, []float64{0.5, 0.3, 0.2}
	policy := strings.NewReplacer("BORROW", "", `,"on_limit":"queue","wait":"60s"`, "").Replace(sharePolicy)
	rapid.Check(t, func(t *rapid.T) {
		p, err := filtertest.NewProcess(nil, 3)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Configure([]byte(policy)); err != nil {
			t.Fatal(err)
		}
		var own, most [3]float64
		for c := range own {
			most[c] = float64(int(149*shares[c]) / 2)
			own[c] = most[c]
		}
		level := burst
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			d := time.Duration(rapid.SampledFrom([]int{0, 20, 100, 2000}).Draw(t, "wait")) * time.Millisecond
			p.Sleep(d)
			level = min(level+rate*d.Seconds(), burst)
			for c := range own {
				own[c] = min(own[c]+rate*shares[c]*d.Seconds(), most[c])
			}
			c := rapid.IntRange(0, 2).Draw(t, "class")
			for range rapid.IntRange(1, 60).Draw(t, "calls") {
				x := p.Worker(rapid.IntRange(0, 2).Draw(t, "worker")).Open(classed("a", classes[c], "gpt-4o"))
				if !x.Sent && own[c] >= 1.01 {
					t.Fatalf("class %s is refused with %.2f of its own: %+v", classes[c], own[c], x.Reply.Body)
				}
				if x.Sent {
					level--
					own[c] = max(own[c]-1, 0)
				}
			}
			if level < -0.01 {
				t.Fatalf("%.2f more than the limit", -level)
			}
		}
	})
}
