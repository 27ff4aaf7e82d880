// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy/queue"
)

// The reference tables come out as the mission has them.
func TestReferenceTables(t *testing.T) {
	for _, e := range []Experiment{AgentBurst(), Starvation()} {
		r, err := e.Run(Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range r.Table.Lines {
			t.Log(l)
		}
		for _, c := range r.Checks {
			if !c.OK {
				t.Errorf("%s, %s: want %s, found %s", e.Name, c.What, c.Want, c.Found)
			}
		}
	}
}

// The same seed gives the same bytes.
func TestReferenceTablesRepeat(t *testing.T) {
	for _, j := range []Jitter{Additive, Equal, Full} {
		var last string
		for range 3 {
			r, err := AgentBurst().Run(Options{Seed: 7, Jitter: j})
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(r)
			if err != nil || last != "" && last != string(b) {
				t.Errorf("%v %s\n%s", err, last, b)
			}
			last = string(b)
		}
	}
}

// The checks find a table that is wrong: a control ordered by priority, another rate, no jitter at all, other weights.
func TestReferenceChecksBite(t *testing.T) {
	burst, starved := slices.Clone(burstRows), slices.Clone(starvationRows)
	defer func() { burstRows, starvationRows = burst, starved }()
	for name, fault := range map[string]func(){
		"the FIFO control is strict":    func() { burstRows[4].client.queue = twoClasses(queue.Strict) },
		"priority is FIFO":              func() { burstRows[5].client.queue = twoClasses(queue.FIFO) },
		"7 a second":                    func() { burstRows[8].client.rate = 7 },
		"rejected calls do not retry":   func() { burstRows[1].client.retry = false },
		"a cap that is a bucket":        func() { burstRows[2].client.rate = 4 },
		"strict priority ages":          func() { starvationRows[0].queue = starvationRows[2].queue },
		"aging at another rate":         func() { starvationRows[1].queue.Rate = 0.4 },
		"a threshold of 2.1 s":          func() { starvationRows[2].queue.Classes = []queue.Class{{}, {Threshold: 2100 * time.Millisecond}} },
		"weights upside down":           func() { starvationRows[3].queue.Classes = []queue.Class{{Weight: 1}, {Weight: 3}} },
		"the starvation control is not": func() { starvationRows[6].queue = twoClasses(queue.Strict) },
	} {
		burstRows, starvationRows = slices.Clone(burst), slices.Clone(starved)
		fault()
		a, err := AgentBurst().Run(Options{Seed: 1})
		b, err2 := Starvation().Run(Options{Seed: 1})
		if err != nil || err2 != nil || !a.Failed() && !b.Failed() {
			t.Errorf("nobody finds: %s %v %v", name, err, err2)
		}
	}
}
