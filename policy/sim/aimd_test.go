// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/feedback"
)

func TestAIMD(t *testing.T) {
	r, err := AIMD().Run(Options{Seed: 1, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Table.Lines {
		t.Log(strings.Join(l, "\t"))
	}
	for _, c := range r.Checks {
		if !c.OK {
			t.Errorf("%s: want %s, found %s", c.What, c.Want, c.Found)
		}
	}
	again, _ := AIMD().Run(Options{Seed: 1, Quick: true})
	if !reflect.DeepEqual(r, again) {
		t.Error("a seed gives another report the second time")
	}
}

// A control with a known answer: a rate that stays where it is uses what it is, and is rejected for the rest.
type fixedRate policy.Share

func (f fixedRate) Step(int64, feedback.Sample) (feedback.Change, bool) {
	return feedback.Change{}, false
}
func (f fixedRate) Rate() policy.Share { return policy.Share(f) }
func (f fixedRate) Epoch() uint32      { return 0 }

func TestAIMDControl(t *testing.T) {
	for _, row := range []struct {
		share          policy.Share
		used, rejected float64
	}{{policy.Whole / 3, 0.5, 0}, {policy.Whole, 1, 1. / 3}} {
		v := aimdVariant{"fixed", func() adapter { return fixedRate(row.share) }}
		got := aimdSteady(Options{Seed: 1, Quick: true}, v, 2*time.Second, aimdLimit)
		if d := got.Utilisation - row.used; d > 0.01 || d < -0.01 {
			t.Errorf("%v: utilisation %v", row.share, got.Utilisation)
		}
		if d := got.Rejected - row.rejected; d > 0.01 || d < -0.01 {
			t.Errorf("%v: rejected %v", row.share, got.Rejected)
		}
	}
}

// The checks convict a controller that takes every 429 for news.
func TestAIMDChecksConvict(t *testing.T) {
	v := aimdVariants()[3]
	steady, stepped := aimdSteady(Options{Seed: 1, Quick: true}, v, 5*time.Second, aimdLimit), aimdStepped(Options{Seed: 1, Quick: true}, v, 5*time.Second)
	steady.Variant = "defaults"
	r := Report{Checks: aimdChecks(&steady, &stepped)}
	if !r.Failed() {
		t.Errorf("%+v", r.Checks)
	}
}
