// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"reflect"
	"testing"
)

func runChecked(t *testing.T, e Experiment) *Report {
	t.Helper()
	r, err := e.Run(Options{Seed: 1, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Table.Lines {
		t.Log(l)
	}
	for _, c := range r.Checks {
		if !c.OK {
			t.Errorf("%s: %s, wanted %s", c.What, c.Found, c.Want)
		}
	}
	return r
}

func TestFleet(t *testing.T) {
	r := runChecked(t, Fleet())
	for _, row := range r.Rows.([]FleetRow) {
		if row.Conditions == "quiet" && row.Goodput < 0.95 {
			t.Errorf("%+v", row)
		}
	}
	if len(r.Charts) != 2 || len(r.Charts[0].Lines[0].Points) < 200 {
		t.Error("no chart of it")
	}
}

// The same seed gives the same run.
func TestFleetIsDeterministic(t *testing.T) {
	c := fleetConfig{seed: 5, nodes: 4, hard: true, windowed: true, seconds: 60, warm: 10}
	if a, b := newFleetWorld(c).run(), newFleetWorld(c).run(); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, then %+v", a, b)
	}
}

func TestSmallQuota(t *testing.T) { runChecked(t, SmallQuota()) }
