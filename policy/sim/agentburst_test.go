// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"testing"
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
