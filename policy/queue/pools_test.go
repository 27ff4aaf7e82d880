// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy"
	"pgregory.net/rapid"
)

// A poolPlan is pools and what is done to them.
type poolPlan struct {
	Limit, Burst int64
	Pools        []Pool
	Steps        []poolStep
}

// A poolStep waits some ticks, and then takes or settles.
type poolStep struct {
	Ticks, N int64
	Class    int
	Settle   bool // N was reserved, Actual was used
	Actual   int64
}

const poolWindow = time.Millisecond // a thousand ticks: few enough for a twin that walks them

// anyPoolPlan has requests up to most times the smallest burst of a class, in tenths.
func anyPoolPlan(settles bool) *rapid.Generator[poolPlan] {
	return rapid.Custom(func(t *rapid.T) poolPlan {
		p := poolPlan{Limit: rapid.Int64Range(100, 5000).Draw(t, "limit")}
		p.Burst = p.Limit / rapid.Int64Range(1, 6).Draw(t, "burst")
		left := policy.Whole
		for range rapid.IntRange(1, 4).Draw(t, "classes") {
			share := policy.Share(rapid.Int64Range(50_000, 400_000).Draw(t, "share"))
			if share = min(share, left); share < 50_000 {
				break
			}
			left -= share
			p.Pools = append(p.Pools, Pool{
				Share: share, Keep: rapid.IntRange(0, 3).Draw(t, "keep") == 0, Apart: rapid.IntRange(0, 3).Draw(t, "apart") == 0,
				Threshold: policy.Share(rapid.SampledFrom([]int64{0, 150_000, 400_000}).Draw(t, "threshold")),
			})
		}
		p.Pools[0].Threshold = 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			s := poolStep{
				Ticks: rapid.SampledFrom([]int64{0, 0, 1, 10, 100, 700}).Draw(t, "ticks"), Class: rapid.IntRange(0, len(p.Pools)-1).Draw(t, "class"),
				N: rapid.Int64Range(1, p.Limit/4).Draw(t, "n"), Settle: settles && rapid.IntRange(0, 4).Draw(t, "settle") == 0,
			}
			s.Actual = rapid.Int64Range(0, 2*s.N).Draw(t, "actual")
			p.Steps = append(p.Steps, s)
		}
		return p
	})
}

// withBorrower adds a class without a share, which takes some of the steps.
func (p poolPlan) withBorrower() poolPlan {
	p.Pools = append(slices.Clone(p.Pools), Pool{})
	p.Steps = slices.Clone(p.Steps)
	for i := range p.Steps {
		if p.Steps[i].N%3 == 0 {
			p.Steps[i].Class = len(p.Pools) - 1
		}
	}
	return p
}

func (p poolPlan) make(fault func(*Pools)) (*Pools, error) {
	pools, err := NewPools(policy.NewMeter(policy.MeterSpec{
		Dimension: policy.TPM, Kind: policy.Continuous, Limit: p.Limit * int64(time.Minute/poolWindow), Window: poolWindow, Burst: p.Burst,
	}), p.Pools)
	if err == nil && fault != nil {
		fault(pools)
	}
	return pools, err
}

// A poolTwin is the same tick by tick, in thousandths of a unit, which is what a window of a thousand ticks makes exact.
type poolTwin struct {
	plan                    poolPlan
	own, burst, rate, floor []int64
	pot, most, direct       int64
}

func newPoolTwin(p poolPlan) *poolTwin {
	w := &poolTwin{plan: p, direct: p.Limit, most: p.Burst}
	for _, c := range p.Pools {
		rate, burst := p.Limit*int64(c.Share)/1e6, max(p.Burst*int64(c.Share)/1e6/2, 1)
		if c.Share == 0 {
			burst = 0
		}
		w.rate, w.burst, w.own = append(w.rate, rate), append(w.burst, burst*1000), append(w.own, burst*1000)
		w.direct -= rate
		w.most -= burst
	}
	w.most *= 1000
	w.pot = w.most
	for _, c := range p.Pools {
		w.floor = append(w.floor, w.most*int64(c.Threshold)/1e6)
	}
	return w
}

func (w *poolTwin) tick() {
	w.pot += w.direct
	for i := range w.own {
		w.own[i] += w.rate[i]
		if w.own[i] > w.burst[i] {
			if !w.plan.Pools[i].Keep {
				w.pot += w.own[i] - w.burst[i]
			}
			w.own[i] = w.burst[i]
		}
	}
	w.pot = min(w.pot, w.most)
}

// free is what a class has and may borrow.
func (w *poolTwin) free(class int) int64 {
	n := max(w.own[class], 0)
	if !w.plan.Pools[class].Apart {
		n += max(w.pot-w.floor[class], 0)
	}
	return n
}

func (w *poolTwin) take(class int, n int64) bool {
	n *= 1000
	if w.rate[class] == 0 {
		if w.pot < n && w.pot < w.most {
			return false
		}
		w.pot -= n
		return true
	}
	full := w.own[class] == w.burst[class]
	switch free := w.free(class); {
	case w.own[class] >= n:
		w.own[class] -= n
	case free >= n:
		w.pot -= n - max(w.own[class], 0)
		w.own[class] = min(w.own[class], 0)
	case full:
		w.own[class] -= n
	default:
		return false
	}
	return true
}

func (w *poolTwin) settle(class int, reserved, actual int64) {
	if w.rate[class] == 0 {
		w.pot = min(max(w.pot+(min(reserved, w.plan.Limit)-min(actual, w.plan.Limit))*1000, w.most-w.plan.Limit*1000), w.most)
		return
	}
	w.own[class] += (min(reserved, w.plan.Limit) - min(actual, w.plan.Limit)) * 1000
	w.own[class] = max(w.own[class], w.burst[class]-w.plan.Limit*1000)
	if over := w.own[class] - w.burst[class]; over > 0 {
		w.own[class] -= over
		w.pot = min(w.pot+over, w.most)
	}
}

// likeTwin runs a plan on both and says where they differ. Every wait is checked: then and not a tick earlier.
func (p poolPlan) likeTwin(fault func(*Pools)) error {
	pools, err := p.make(fault)
	if err != nil {
		return err
	}
	w, s, now := newPoolTwin(p), pools.Full(0), int64(0)
	for i, step := range p.Steps {
		for range step.Ticks {
			w.tick()
		}
		now += step.Ticks * 1000
		if step.Settle {
			w.settle(step.Class, step.N, step.Actual)
			pools.Settle(&s, now, step.Class, step.N, step.Actual)
		} else {
			wait := pools.Wait(s, now, step.Class, step.N)
			if wait == Never {
				// The twin is not asked: it is refused now, and nothing runs into the pot.
				if w.direct > 0 || slices.ContainsFunc(p.Pools, func(c Pool) bool { return c.Share > 0 && !c.Keep }) {
					return fmt.Errorf("step %d: something runs into the pot", i)
				}
				if pools.may(&s, step.Class, pools.units(step.N)) {
					return fmt.Errorf("step %d: it may", i)
				}
				continue
			}
			later, sooner := s, s
			if !pools.Take(&later, now+wait, step.Class, step.N) || wait > 0 && pools.Take(&sooner, now+wait-1, step.Class, step.N) {
				return fmt.Errorf("step %d: a wait of %d ns is not exact", i, wait)
			}
			got, want := pools.Take(&s, now, step.Class, step.N), w.take(step.Class, step.N)
			if got != want || got != (wait == 0) {
				return fmt.Errorf("step %d: admitted %v, want %v; the wait was %d", i, got, want, wait)
			}
		}
		for c, own := range w.own {
			if s.Own[c] != own || s.Pot != w.pot {
				return fmt.Errorf("step %d: class %d has %d and the pot %d, want %d and %d", i, c, s.Own[c], s.Pot, own, w.pot)
			}
		}
	}
	return nil
}

func TestPoolsLikeTheirTwin(t *testing.T) {
	plans := anyPoolPlan(true)
	rapid.Check(t, func(t *rapid.T) {
		if err := plans.Draw(t, "plan").likeTwin(nil); err != nil {
			t.Fatal(err)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		if err := plans.Draw(t, "plan").withBorrower().likeTwin(nil); err != nil {
			t.Fatal(err)
		}
	})
}

// P21: while what a class has of its own and may borrow holds n it is not refused n, so the highest class never while its
// level does; and whoever borrows leaves its threshold in the pot.
func (p poolPlan) p21(fault func(*Pools)) error {
	pools, err := p.make(fault)
	if err != nil {
		return err
	}
	right, _ := p.make(nil)
	s, now := pools.Full(0), int64(0)
	for i, step := range p.Steps {
		now += step.Ticks * 1000
		before := s
		right.refill(&before, now/right.tick)
		level := right.Level(before, now, step.Class)
		got := pools.Take(&s, now, step.Class, step.N)
		if level >= step.N && !got {
			return fmt.Errorf("step %d: class %d is refused %d of %d", i, step.Class, step.N, level)
		}
		if s.Pot < before.Pot && s.Pot < right.classes[step.Class].floor {
			return fmt.Errorf("step %d: class %d borrows below its threshold", i, step.Class)
		}
	}
	return nil
}

func TestP21(t *testing.T) {
	plans := anyPoolPlan(false)
	rapid.Check(t, func(t *rapid.T) {
		if err := plans.Draw(t, "plan").p21(nil); err != nil {
			t.Fatal(err)
		}
	})
}

// starves lets all classes but one take whatever they can, at every tick; the one sends requests of its own, one after the
// other, none above its burst. It says whether one waits longer than the bound, or all get more than the limit.
func (p poolPlan) starves(fault func(*Pools)) error {
	pools, err := p.make(fault)
	if err != nil {
		return err
	}
	right, _ := p.make(nil)
	s, victim := pools.Full(0), p.Steps[0].Class
	rate, burst := right.Rate(victim), right.Burst(victim)
	var now, taken, asked, since int64
	next := 1 + p.Steps[0].N%burst
	for tick := range int64(3000) {
		now = tick * 1000
		for c := range p.Pools {
			for n := p.Burst; c != victim && n > 0; n /= 2 { // as much as there is, in steps that all count
				for n <= right.Burst(c) && pools.Take(&s, now, c, n) {
					taken += n
				}
			}
		}
		asked += next
		if pools.Take(&s, now, victim, next) {
			taken += next
			next, since = 1+(next*7+p.Steps[0].N)%burst, tick+1
		}
		if wait := tick + 1 - since; wait*rate > next*1000+rate {
			return fmt.Errorf("%d units wait longer than %d ticks at %d a window", next, wait, rate)
		}
		if most := p.Burst*1000 + p.Limit*tick; taken*1000 > most {
			return fmt.Errorf("%d units in %d ticks: more than %d and %d a window", taken, tick, p.Burst, p.Limit)
		}
	}
	return nil
}

func TestPoolsStarveNobody(t *testing.T) {
	plans := anyPoolPlan(false)
	rapid.Check(t, func(t *rapid.T) {
		if err := plans.Draw(t, "plan").starves(nil); err != nil {
			t.Fatal(err)
		}
	})
}

// Each property of the pools fails when they are a little wrong.
func TestPoolPropertiesBite(t *testing.T) {
	each := func(f func(*poolClass)) func(*Pools) {
		return func(p *Pools) {
			for i := range p.classes {
				f(&p.classes[i])
			}
		}
	}
	for name, fault := range map[string]struct {
		holds func(poolPlan, func(*Pools)) error
		spoil func(*Pools)
	}{
		"twin: a rate one off":           {poolPlan.likeTwin, func(p *Pools) { p.classes[0].rate++ }},
		"twin: kept shares lent":         {poolPlan.likeTwin, each(func(c *poolClass) { c.keep = false })},
		"P21: nobody may borrow":         {poolPlan.p21, each(func(c *poolClass) { c.apart = true })},
		"P21: no thresholds":             {poolPlan.p21, each(func(c *poolClass) { c.floor = 0 })},
		"starvation: nine tenths":        {poolPlan.starves, each(func(c *poolClass) { c.rate = c.rate * 9 / 10 })},
		"starvation: no bucket of one's": {poolPlan.starves, each(func(c *poolClass) { c.burst = 0 })},
		"sum: all of the burst twice":    {poolPlan.starves, func(p *Pools) { p.pot *= 2 }},
		"sum: rates a tenth more":        {poolPlan.starves, each(func(c *poolClass) { c.rate += c.rate/10 + 1 })},
	} {
		plans, found := anyPoolPlan(name[:4] == "twin"), false
		for seed := 0; seed < 150 && !found; seed++ {
			found = fault.holds(plans.Example(seed), fault.spoil) != nil
		}
		if !found {
			t.Errorf("nobody finds: %s", name)
		}
	}
}

// The mission's shares, 60, 25 and 15 %: while all want all, each gets its own; what interactive does not use is lent to
// batch; and when it wakes up it has its burst at once and its rate from then on.
func TestLendingAndGettingBack(t *testing.T) {
	meter := policy.NewMeter(policy.MeterSpec{Dimension: policy.TPM, Kind: policy.Continuous, Limit: 60_000, Burst: 10_000})
	pools, err := NewPools(meter, []Pool{{Share: 600_000}, {Share: 250_000}, {Share: 150_000}})
	if err != nil {
		t.Fatal(err)
	}
	s := pools.Full(0)
	got := func(from, to time.Duration, want ...int) (units [3]int64) {
		for at := from; at < to; at += 10 * time.Millisecond {
			for _, c := range want {
				for pools.Take(&s, int64(at), c, 5) {
					units[c] += 5
				}
			}
		}
		return units
	}
	near := func(what string, got, want, most int64) {
		t.Helper()
		if got < want-most || got > want+most {
			t.Errorf("%s: %d units, want %d", what, got, want)
		}
	}
	got(0, time.Minute, 2, 1, 0) // spend the bursts
	all := got(time.Minute, 2*time.Minute, 2, 1, 0)
	near("interactive's own", all[0], 36_000, 20)
	near("batch's own", all[1], 15_000, 20)
	near("probe's own", all[2], 9_000, 20)
	idle := got(2*time.Minute, 3*time.Minute, 1)
	near("batch with all that is lent", idle[1], 60_000-3000-750, 30) // the others' buckets fill first
	woken := got(3*time.Minute, 3*time.Minute+10*time.Millisecond, 1, 0)
	near("interactive's burst at once", woken[0], pools.Burst(0), 5)
	back := got(3*time.Minute+10*time.Millisecond, 4*time.Minute, 2, 1, 0)
	near("interactive's rate from then on", back[0], 36_000, 20)
}

// A change of the limit mints nothing for anybody, forgives no debt, and may be made as often as one likes.
func TestCarryMintsNothing(t *testing.T) {
	plans := anyPoolPlan(true)
	rapid.Check(t, func(t *rapid.T) {
		a, b := plans.Draw(t, "from"), plans.Draw(t, "to")
		from, err := a.make(nil)
		to, err2 := b.make(nil)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		s, now := from.Full(0), int64(0)
		for _, step := range a.Steps {
			now += step.Ticks * 1000
			if from.Take(&s, now, step.Class, step.N) && step.Settle {
				from.Settle(&s, now, step.Class, step.N, step.Actual)
			}
		}
		got := to.Carry(s, now, from)
		for i := range to.classes {
			own := int64(0)
			if i < len(from.classes) {
				own = s.Own[i]
			}
			owes := max(own, to.classes[i].burst-to.limit*to.window) // a window's worth at most, as everywhere
			if got.Own[i] > owes || got.Own[i] > to.classes[i].burst || own >= 0 && got.Own[i] < 0 {
				t.Fatalf("class %d has %d of %d", i, got.Own[i], own)
			}
		}
		if got.Pot > s.Pot || got.Pot > to.pot || to.Carry(got, now, to) != got {
			t.Fatalf("the pot has %d of %d, or another change changes something", got.Pot, s.Pot)
		}
	})
}

// The same over another window: the same units, whole ones.
func TestCarryToAnotherWindow(t *testing.T) {
	half := []Pool{{Share: policy.Whole / 2}}
	minute, err := NewPools(policy.NewMeter(policy.MeterSpec{Dimension: policy.TPM, Limit: 6000, Burst: 1000}), half)
	day, err2 := NewPools(policy.NewMeter(policy.MeterSpec{Dimension: policy.TPD, Limit: 86_400_000, Burst: 2000}), half)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	s := minute.Full(0)
	minute.Take(&s, 0, 0, 600) // 250 of its own, the rest of the pot
	for _, level := range []int64{400, -350} {
		if got := day.Level(day.Carry(s, 0, minute), 0, 0); got != level {
			t.Errorf("%d units, want %d", got, level)
		}
		minute.Settle(&s, 0, 0, 0, 350)
		s.Pot = 0
	}
}

func TestPoolErrors(t *testing.T) {
	m := policy.NewMeter(policy.MeterSpec{Dimension: policy.TPM, Limit: 1000})
	for _, pools := range [][]Pool{
		nil, make([]Pool, MaxClasses+1), {{Share: 0, Apart: true}}, {{Share: -1}}, {{Share: 600_000}, {Share: 600_000}}, {{Share: 100}}, {{Share: policy.Whole, Threshold: -1}},
	} {
		if _, err := NewPools(m, pools); err == nil {
			t.Errorf("%+v is taken", pools)
		}
	}
	if _, err := NewPools(policy.NewMeter(policy.MeterSpec{Dimension: policy.RPD, Limit: policy.MaxUnits}), []Pool{{Share: policy.Whole}}); err != nil {
		t.Errorf("the largest limit a day: %v", err)
	}
}

func BenchmarkPoolsTake(b *testing.B) {
	p, err := NewPools(policy.NewMeter(policy.MeterSpec{Dimension: policy.TPM, Limit: 6_000_000}), []Pool{{Share: 600_000}, {Share: 250_000}, {Share: 150_000}})
	if err != nil {
		b.Fatal(err)
	}
	s, now := p.Full(0), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 1e6
		if !p.Take(&s, now, int(now/1e6%3), 100) {
			p.Wait(s, now, 0, 100)
		}
	}
}
