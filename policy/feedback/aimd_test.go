// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"testing"

	"github.com/weirproxy/weir/policy"
	"pgregory.net/rapid"
)

// A stepper is a controller, or a planted fault around one.
type stepper interface {
	Step(now int64, s Sample) (Change, bool)
	Rate() policy.Share
	Epoch() uint32
}

// run drives a controller with random samples and says which promise it breaks first (P20).
func run(t *rapid.T, r Rules, c stepper) error {
	w := watcher{rules: r, lastCut: -r.Cooldown, cuts: map[uint32]int{}, clean: []Sample{{}}, times: []int64{0}}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		w.now += rapid.OneOf(rapid.Int64Range(0, 2*second), rapid.Int64Range(0, 40*second)).Draw(t, "dt")
		s := Sample{Epoch: c.Epoch(), Answered: 100, Could: rapid.Int64Range(1, 1000).Draw(t, "could")}
		if s.Epoch > 0 && rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
			s.Epoch -= uint32(rapid.IntRange(1, min(3, int(s.Epoch))).Draw(t, "epochs"))
		}
		s.Sent = s.Could * rapid.Int64Range(0, 100).Draw(t, "used %") / 100
		s.Rejected = rapid.SampledFrom([]int64{0, 0, 0, 1, 50}).Draw(t, "rejected")
		before, epoch := c.Rate(), c.Epoch()
		change, changed := c.Step(w.now, s)
		if err := w.check(s, epoch, before, c, change, changed); err != nil {
			return err
		}
	}
	return nil
}

type watcher struct {
	rules   Rules
	now     int64
	lastCut int64
	clean   []Sample // since the last change or rejection; the first is that moment
	times   []int64
	cuts    map[uint32]int
}

func (w *watcher) check(s Sample, epoch uint32, before policy.Share, c stepper, change Change, changed bool) error {
	after := c.Rate()
	switch {
	case changed != (before != after):
		return fmt.Errorf("changed %v, %v to %v", changed, before, after)
	case changed && (change.From != before || change.To != after || change.At != w.now || change.Reason == Unchanged || change.Epoch != c.Epoch()):
		return fmt.Errorf("%v to %v is told as %+v", before, after, change)
	case (after < before) != (c.Epoch() != epoch):
		return fmt.Errorf("%v to %v, epoch %d to %d", before, after, epoch, c.Epoch())
	case after < w.rules.Floor || after > w.rules.Ceiling:
		return fmt.Errorf("%v is out of bounds", after)
	case after < before:
		return w.cut(s, epoch)
	}
	rejected := s.Rejected > 0 && s.Epoch == epoch
	if s.Epoch == epoch {
		w.clean, w.times = append(w.clean, s), append(w.times, w.now)
	}
	if after > before && (rejected || !w.earned()) {
		return fmt.Errorf("raised at %d by %+v after %v %+v", w.now, s, w.times, w.clean)
	}
	if after > before || rejected {
		w.clean, w.times = []Sample{{}}, []int64{w.now}
	}
	return nil
}

func (w *watcher) cut(s Sample, epoch uint32) error {
	if w.cuts[s.Epoch]++; w.cuts[s.Epoch] > 1 {
		return fmt.Errorf("cut %d of epoch %d", w.cuts[s.Epoch], s.Epoch)
	}
	if s.Epoch != epoch {
		return fmt.Errorf("cut by a rejection of epoch %d in epoch %d", s.Epoch, epoch)
	}
	if w.now-w.lastCut < w.rules.Cooldown {
		return fmt.Errorf("cut %d ns after another", w.now-w.lastCut)
	}
	w.lastCut, w.clean, w.times = w.now, []Sample{{}}, []int64{w.now}
	return nil
}

// earned says whether the rate was used over any long enough time up to now without rejections.
func (w *watcher) earned() bool {
	least := w.rules.Per
	if w.rules.Fast {
		least = min(least, w.rules.Cooldown)
	}
	var sent, could int64
	for i := len(w.clean) - 1; i > 0; i-- {
		sent, could = sent+w.clean[i].Sent, could+w.clean[i].Could
		if w.now-w.times[i-1] >= least && sent*4 >= could*3 {
			return true
		}
	}
	return false
}

func drawRules(t *rapid.T) Rules {
	r := DefaultRules()
	r.Fast = rapid.Bool().Draw(t, "fast")
	r.Decrease = policy.Share(rapid.Int64Range(100_000, 990_000).Draw(t, "decrease"))
	r.Increase = policy.Share(rapid.Int64Range(1, 1_000_000).Draw(t, "increase"))
	r.Ceiling = policy.Share(rapid.Int64Range(1000, 1_000_000).Draw(t, "ceiling"))
	r.Floor = policy.Share(rapid.Int64Range(1, int64(r.Ceiling)).Draw(t, "floor"))
	return r
}

// P20: one cut an epoch and a cool-down, always within bounds, never raised when rejected or not used.
func TestControllerKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRules(t)
		if err := run(t, r, NewController(r, policy.Share(rapid.Int64().Draw(t, "start")), 0)); err != nil {
			t.Fatal(err)
		}
	})
}

// Planted faults: each breaks one rule. The property must convict it, or it proves nothing.
type (
	noCooldown struct{ *Controller }
	noEpochs   struct{ *Controller }
	noGuard    struct{ *Controller }
	noFloor    struct{ *Controller }
	noClean    struct{ *Controller }
	silent     struct{ *Controller }
)

func (f noCooldown) Step(now int64, s Sample) (Change, bool) {
	f.cutAt = now - f.rules.Cooldown
	return f.Controller.Step(now, s)
}

func (f noEpochs) Step(now int64, s Sample) (Change, bool) {
	s.Epoch = f.epoch
	return f.Controller.Step(now, s)
}

func (f noGuard) Step(now int64, s Sample) (Change, bool) {
	s.Sent = s.Could
	return f.Controller.Step(now, s)
}

func (f noFloor) Step(now int64, s Sample) (Change, bool) {
	f.rules.Floor = 1
	return f.Controller.Step(now, s)
}

func (f noClean) Step(now int64, s Sample) (Change, bool) {
	f.since -= f.rules.Per / 2
	return f.Controller.Step(now, s)
}

func (f silent) Step(now int64, s Sample) (Change, bool) {
	c, _ := f.Controller.Step(now, s)
	return c, false
}

// convicted says whether the property fails for a fault within some runs.
func convicted(t *testing.T, property func(*rapid.T) error) bool {
	t.Helper()
	example := rapid.Custom(func(t *rapid.T) bool { return property(t) != nil })
	for seed := range 300 {
		if example.Example(seed) {
			return true
		}
	}
	return false
}

func TestControllerFaultsAreFound(t *testing.T) {
	for name, plant := range map[string]func(*Controller) stepper{
		"no cool-down": func(c *Controller) stepper { return noCooldown{c} },
		"no epochs":    func(c *Controller) stepper { return noEpochs{c} },
		"no guard":     func(c *Controller) stepper { return noGuard{c} },
		"no floor":     func(c *Controller) stepper { return noFloor{c} },
		"too early":    func(c *Controller) stepper { return noClean{c} },
		"not told":     func(c *Controller) stepper { return silent{c} },
	} {
		if !convicted(t, func(t *rapid.T) error {
			r := drawRules(t)
			return run(t, r, plant(NewController(r, r.Ceiling, 0)))
		}) {
			t.Errorf("%s: not found", name)
		}
	}
}
