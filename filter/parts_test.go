// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
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
