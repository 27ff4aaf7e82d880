// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"testing"

	"github.com/weirproxy/weir/policy"
	"pgregory.net/rapid"
)

// A fluid is the loop without events: each second the rate flows into a provider's bucket of unknown capacity, and what was
// rejected is told delay seconds later. It is the slow simulation's obvious twin (policy/sim has one call after another).
type fluid struct {
	ceiling, capacity, burst float64 // a second
	delay                    int
}

// run gives what was used of the capacity, and which share of calls was rejected, from forty minutes without the first
// ten, in which it finds the capacity.
func (f fluid) run(c stepper) (used, rejected float64) {
	type second0 struct {
		s     Sample
		rate  float64
		epoch uint32
	}
	var way []second0
	level, taken, sentAll, refused := f.burst, 0.0, 0.0, 0.0
	for s := range 2400 {
		way = append(way, second0{rate: f.ceiling * float64(c.Rate()) / float64(policy.Whole), epoch: c.Epoch()})
		inForce := way[max(0, s-f.delay/2)]
		sent := inForce.rate
		level = min(level+f.capacity, f.burst+f.capacity)
		took := min(sent, level)
		level = min(level-took, f.burst)
		if s >= 600 {
			taken, sentAll, refused = taken+took, sentAll+sent, refused+sent-took
		}
		now := &way[s].s
		*now = Sample{Epoch: inForce.epoch, Answered: int64(1000 * sent), Rejected: int64(1000 * (sent - took)), Sent: int64(1000 * sent), Could: int64(1000 * sent)}
		if told := s - (f.delay+1)/2; told >= 0 {
			c.Step(int64(s)*second, way[told].s)
		}
	}
	return taken / (f.capacity * 1800), refused / sentAll
}

// P20: at a constant capacity the defaults use at least 0.8 of it (0.83 at the reference point of `weir simulate aimd`; the
// measure of the steps against the capacity decides) with under 1 % rejected; climb: fast 0.9. The ceiling is at most twice
// the capacity: the additive step is of the ceiling, so that further off it is a large part of what there is.
func usesWhatThereIs(t *rapid.T, plant func(Rules) stepper) error {
	f := fluid{ceiling: 100, delay: rapid.IntRange(0, 5).Draw(t, "delay")}
	f.capacity = rapid.Float64Range(50, 99).Draw(t, "capacity")
	f.burst = rapid.Float64Range(1, 10).Draw(t, "burst")
	r := DefaultRules()
	r.Fast = rapid.Bool().Draw(t, "fast")
	used, rejected := f.run(plant(r))
	least := 0.8
	if r.Fast {
		least = 0.9
	}
	if used < least || rejected > 0.01 {
		return fmt.Errorf("%+v, fast %v: used %.3f, rejected %.4f", f, r.Fast, used, rejected)
	}
	return nil
}

func TestConstantCapacityIsUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := usesWhatThereIs(t, func(r Rules) stepper { return NewController(r, policy.Whole, 0) }); err != nil {
			t.Fatal(err)
		}
	})
}

func TestConstantCapacityConvicts(t *testing.T) {
	for name, plant := range map[string]func(*Controller) stepper{
		"each rejection cuts": func(c *Controller) stepper { return noEpochs{c} },
		"climbs too early":    func(c *Controller) stepper { return eager{c} },
	} {
		if !convicted(t, func(t *rapid.T) error {
			return usesWhatThereIs(t, func(r Rules) stepper {
				if name == "each rejection cuts" {
					r.Cooldown = 1
				}
				return plant(NewController(r, policy.Whole, 0))
			})
		}) {
			t.Errorf("%s: not found", name)
		}
	}
}

// eager climbs each second.
type eager struct{ *Controller }

func (f eager) Step(now int64, s Sample) (Change, bool) {
	f.since = now - f.rules.Per
	return f.Controller.Step(now, s)
}

func step(c *Controller, at float64, s Sample) policy.Share {
	s.Epoch = c.epoch
	c.Step(sec(at), s)
	return c.rate
}

var busySample = Sample{Answered: 100, Sent: 100, Could: 100}

// The rules as people expect them, and the field cases aimd-01, aimd-04 and aimd-06.
func TestControllerExample(t *testing.T) {
	c := NewController(DefaultRules(), policy.Whole, 0)
	for _, row := range []struct {
		at   float64
		s    Sample
		want policy.Share
	}{
		{1, busySample, 1_000_000},
		{2, Sample{Answered: 40, Rejected: 40, Sent: 40, Could: 40}, 700_000}, // a burst of rejections is one cut
		{3, Sample{Answered: 9, Rejected: 9, Sent: 9, Could: 9}, 700_000},     // in the cool-down
		{32, busySample, 700_000},
		{33, busySample, 750_000},            // 30 s without
		{63, Sample{Could: 100}, 750_000},    // not used: nothing is learned
		{93, busySample, 800_000},            // used again
		{123, Sample{}, 800_000},             // an empty sample
		{153, busySample, 850_000},           // other endings (4xx, resets) are no sample at all
		{163, Sample{Rejected: 1}, 595_000},  // one is enough
		{173, Sample{Rejected: 1}, 416_500},  // after the cool-down
		{174, Sample{Rejected: 1}, 416_500},  // not before
		{184, Sample{Rejected: 99}, 291_550}, //
		{194, Sample{Rejected: 99}, 204_085}, //
		{204, Sample{Rejected: 99}, 142_859}, //
		{214, Sample{Rejected: 99}, 100_001}, //
		{224, Sample{Rejected: 99}, 100_000}, // the floor
	} {
		if got := step(c, row.at, row.s); got != row.want {
			t.Fatalf("at %g s it is %v, want %v", row.at, got, row.want)
		}
	}
	if n := c.Limit(30_000); n != 3000 {
		t.Errorf("the floor of 30,000 is %d", n)
	}
	epoch := c.epoch
	if _, changed := c.Step(sec(300), Sample{Epoch: epoch - 1, Answered: 100, Sent: 100, Could: 100}); changed {
		t.Error("a success of an older epoch raised the rate")
	}
}

func TestClimbFast(t *testing.T) {
	r := DefaultRules()
	r.Fast = true
	c := NewController(r, policy.Whole, 0)
	step(c, 1, Sample{Rejected: 1})
	var got []policy.Share
	for at := 2; at <= 140; at++ {
		before := c.rate
		if step(c, float64(at), busySample) != before {
			got = append(got, c.rate)
		}
	}
	want := []policy.Share{825_000, 887_500, 918_750, 934_375, 944_375, 950_000, 960_000, 970_000}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("climbs %v, want %v", got, want)
	}
}

func TestByShare(t *testing.T) {
	r := DefaultRules()
	r.ByShare = true
	c := NewController(r, policy.Whole, 0)
	for at := 1.0; at <= 60; at++ { // 4 %: neither
		step(c, at, Sample{Answered: 100, Rejected: 4, Sent: 100, Could: 100})
	}
	if c.rate != policy.Whole {
		t.Fatalf("%v at 4 %%", c.rate)
	}
	for at := 61.0; at <= 70; at++ {
		step(c, at, Sample{Answered: 100, Rejected: 12, Sent: 100, Could: 100})
	}
	if c.rate != 900_000 {
		t.Fatalf("%v after a minute above 5 %%", c.rate)
	}
	raised := 0.0
	for at := 71.0; at <= 400 && raised == 0; at++ {
		if step(c, at, Sample{Answered: 1000, Rejected: 5, Sent: 1000, Could: 1000}) > 900_000 {
			raised = at
		}
	}
	if c.rate != 950_000 || raised < 360 {
		t.Errorf("%v at %g s, at 0.5 %%", c.rate, raised)
	}
}

func TestRulesOf(t *testing.T) {
	if got := RulesOf(policy.AdaptSpec{}); got != DefaultRules() {
		t.Errorf("%+v", got)
	}
	a := policy.AdaptSpec{Decrease: 0.5, Increase: policy.Growth{Share: 100_000, Per: policy.Duration(minute)}, Cooldown: policy.Duration(5 * second), Floor: 900_000, Ceiling: 800_000, Climb: "fast"}
	want := Rules{Decrease: 500_000, Increase: 100_000, Per: minute, Cooldown: 5 * second, Floor: 800_000, Ceiling: 800_000, Busy: 750_000, Fast: true}
	if got := RulesOf(a); got != want {
		t.Errorf("%+v", got)
	}
}
