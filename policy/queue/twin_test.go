// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A plan is all that happens to a queue: drawn at once, so that it can also be run against a queue with a planted fault.
type plan struct {
	Config Config
	Steps  []step
}

// A step waits, and then does one thing.
type step struct {
	Wait     int64 // ns
	Kind     int   // 0 to 4: push, 5: cancel, 6 and more: turn
	Entry    Entry // its Deadline is from now; 0: none
	Expected int64
	Which    int    // of the queued ones, to cancel
	Sends    int    // a turn sends so many and then stops
	Refused  uint64 // bit set of owners that a turn skips
	For      int64  // how long they are refused
	Parents  uint64 // bit set of parents that a turn skips
	Alone    bool   // what is skipped holds up nobody else
	Parted   int    // bit set of classes whose part has nothing left
}

func anyConfig(t *rapid.T, d Discipline) Config {
	c := Config{Discipline: d, Entries: rapid.IntRange(1, 12).Draw(t, "entries"), Bytes: rapid.Int64Range(0, 60).Draw(t, "bytes")}
	c.Rate = rapid.SampledFrom([]float64{0.25, 0.5, 1, 2}).Draw(t, "rate")
	for range rapid.IntRange(1, 4).Draw(t, "classes") {
		c.Classes = append(c.Classes, Class{
			Threshold: time.Duration(rapid.SampledFrom([]int64{0, 1, 3, 5}).Draw(t, "threshold")) * time.Second,
			Priority:  float64(rapid.IntRange(-1, 3).Draw(t, "priority")),
			Weight:    rapid.Int64Range(0, 7).Draw(t, "weight"),
		})
	}
	return c
}

func anyPlan(d Discipline) *rapid.Generator[plan] {
	return rapid.Custom(func(t *rapid.T) plan {
		p := plan{Config: anyConfig(t, d)}
		half := func(most int64, name string) int64 { return rapid.Int64Range(0, most).Draw(t, name) * 5e8 }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p.Steps = append(p.Steps, step{
				Wait: half(3, "wait"), Kind: rapid.IntRange(0, 9).Draw(t, "kind"),
				Entry: Entry{
					Class: rapid.IntRange(0, len(p.Config.Classes)-1).Draw(t, "class"), Owner: uint64(rapid.IntRange(0, 3).Draw(t, "owner")),
					Parent: rapid.SampledFrom([]uint64{0, 8, 9}).Draw(t, "parent"),
					Bytes:  rapid.Int64Range(0, 12).Draw(t, "bytes"), Cost: rapid.Int64Range(0, 5).Draw(t, "cost"), Deadline: half(20, "deadline"),
				},
				Expected: half(4, "expected"), Which: rapid.IntRange(0, 11).Draw(t, "which"), Sends: rapid.IntRange(0, 3).Draw(t, "sends"),
				Refused: uint64(rapid.SampledFrom([]int{0, 0, 2, 4, 8, 12}).Draw(t, "refused")), For: half(4, "for"),
				Parents: uint64(rapid.SampledFrom([]int{0, 0, 0, 1 << 8, 1 << 9}).Draw(t, "parents")),
				Alone:   rapid.IntRange(0, 3).Draw(t, "alone") == 0,
				Parted:  rapid.SampledFrom([]int{0, 0, 0, 1, 2, 5}).Draw(t, "parted"),
			})
		}
		return p
	})
}

// A pair is the queue and its twin, in step.
type pair struct {
	queue  *Queue
	naive  *naive
	budget Counter
	now    int64
	step   step
	log    []string // what the queue did in this turn
	sends  int
}

// runPlan runs a plan on the queue, made by a configuration that fault may spoil, and on its twin, and says where they differ.
func runPlan(p plan, fault func(*Config)) error {
	r := &pair{naive: &naive{config: p.Config}, budget: Counter{MaxEntries: 1 << 30, MaxBytes: 1 << 30}}
	c := p.Config
	c.Classes = slices.Clone(c.Classes)
	c.Budget = &r.budget
	if fault != nil {
		fault(&c)
	}
	q, err := New(c)
	if err != nil {
		return err
	}
	r.queue = q
	for i, s := range p.Steps {
		r.step = s
		r.now += s.Wait
		if err := r.do(uint64(i)); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if err := r.compare(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func (r *pair) do(id uint64) error {
	switch s := r.step; {
	case s.Kind < 5:
		e := s.Entry
		e.ID = id
		if e.Deadline > 0 {
			e.Deadline += r.now
		}
		h, got := r.queue.Push(r.now, e, s.Expected)
		w, want := r.naive.push(r.now, e, s.Expected)
		if got != want {
			return fmt.Errorf("push: %v, want %v", got, want)
		}
		if w != nil {
			w.handle = h
		}
	case s.Kind == 5 && len(r.naive.list) > 0:
		w := r.naive.list[s.Which%len(r.naive.list)]
		r.naive.remove(w)
		if !r.queue.Cancel(w.handle) || r.queue.Cancel(w.handle) {
			return fmt.Errorf("cancel of %d works never, or twice", w.ID)
		}
	case s.Kind > 5:
		return r.turn()
	}
	return nil
}

// answer is how this step's server answers an offer.
func (r *pair) answer(e Entry) Answer {
	if r.step.Refused>>e.Owner&1 == 1 && r.step.Alone {
		return SkipAlone(r.now + r.step.For)
	}
	if r.step.Refused>>e.Owner&1 == 1 {
		return Skip(r.now + r.step.For)
	}
	if r.step.Parents>>e.Parent&1 == 1 {
		return SkipParent(r.now + r.step.For)
	}
	if r.step.Parted>>e.Class&1 == 1 {
		return SkipClass(r.now + r.step.For)
	}
	if r.sends == r.step.Sends {
		return Stop(r.now + 1e9)
	}
	r.sends++
	return Sent()
}

func (r *pair) Try(_ Handle, e Entry) Answer {
	r.log = append(r.log, fmt.Sprint("try ", e.ID))
	return r.answer(e)
}

func (r *pair) Timeout(_ Handle, e Entry) { r.log = append(r.log, fmt.Sprint("timeout ", e.ID)) }

func (r *pair) turn() error {
	r.log, r.sends = nil, 0
	wake := r.queue.Turn(r.now, r)
	got := r.log
	r.log, r.sends = nil, 0
	try := func(w *waiting) Answer {
		r.log = append(r.log, fmt.Sprint("try ", w.ID))
		return r.answer(w.Entry)
	}
	wantWake := r.naive.turn(r.now, try, func(w *waiting) { r.log = append(r.log, fmt.Sprint("timeout ", w.ID)) })
	for _, log := range [][]string{got, r.log} { // those with the same deadline end in any order
		n := 0
		for n < len(log) && log[n][:2] == "ti" {
			n++
		}
		slices.Sort(log[:n])
	}
	if !reflect.DeepEqual(got, r.log) || wake != wantWake {
		return fmt.Errorf("turn at %d: %v, next at %d; want %v, next at %d", r.now, got, wake, r.log, wantWake)
	}
	if got := r.queue.Stopped(r.now); got != r.naive.stopped {
		return fmt.Errorf("turn at %d: stopped class %d, want %d", r.now, got, r.naive.stopped)
	}
	return nil
}

// compare asks both what they hold, and whether an arrival of each class would go first.
func (r *pair) compare() error {
	var bytes int64
	for _, w := range r.naive.list {
		bytes += w.Bytes
		if e, ok := r.queue.Get(w.handle); !ok || e.ID != w.ID {
			return fmt.Errorf("%d is lost", w.ID)
		}
	}
	n := len(r.naive.list)
	if r.queue.Len() != n || r.queue.Bytes() != bytes || r.budget.Entries != int64(n) || r.budget.Bytes != bytes {
		return fmt.Errorf("holds %d, %d bytes, budget %+v; want %d, %d", r.queue.Len(), r.queue.Bytes(), r.budget, n, bytes)
	}
	for class := range r.naive.config.Classes {
		if got, want := r.queue.MayPass(r.now, class), r.naive.mayPass(r.now, class); got != want {
			return fmt.Errorf("class %d may pass: %v, want %v", class, got, want)
		}
		entries, cost := r.queue.Ahead(class)
		for _, w := range r.naive.list {
			if w.Class == class || r.naive.config.Discipline == FIFO || r.naive.config.Discipline == Strict && w.Class < class {
				entries--
				cost -= max(w.Cost, 1)
			}
		}
		if entries != 0 || cost != 0 {
			return fmt.Errorf("%d entries of %d too many ahead of class %d", entries, cost, class)
		}
	}
	return nil
}

// mayPass: nobody of an equal or higher class waits, and nobody that waits would go before who comes now.
func (q *naive) mayPass(now int64, class int) bool {
	arrival := &waiting{Entry: Entry{Class: class, Arrived: now}, order: q.order}
	tags := q.tags()
	for _, w := range q.list {
		if w.Class <= class || q.goesBefore(now, w, arrival, tags) {
			return false
		}
	}
	return true
}

// Each discipline does as its twin does, in everything.
func TestLikeItsTwin(t *testing.T) {
	for d := range numDisciplines {
		t.Run(d.String(), func(t *testing.T) {
			plans := anyPlan(d)
			rapid.Check(t, func(t *rapid.T) {
				if err := runPlan(plans.Draw(t, "plan"), nil); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// A queue that is a little wrong is found out: the test above would have failed.
func TestTwinFindsFaults(t *testing.T) {
	for name, fault := range map[string]struct {
		of    Discipline
		spoil func(*Config)
	}{
		"strict for the FIFO control": {FIFO, func(c *Config) { c.Discipline = Strict }},
		"FIFO for strict":             {Strict, func(c *Config) { c.Discipline = FIFO }},
		"thresholds a ns late": {Threshold, func(c *Config) {
			for i := range c.Classes {
				if c.Classes[i].Threshold > 0 {
					c.Classes[i].Threshold++
				}
			}
		}},
		"no aging":               {Threshold, func(c *Config) { c.Discipline = Strict }},
		"a rate a tenth off":     {Linear, func(c *Config) { c.Rate *= 1.1 }},
		"priorities upside down": {Linear, func(c *Config) { c.Classes[0].Priority *= -1 }},
		"one weight one off":     {Weighted, func(c *Config) { c.Classes[0].Weight++ }},
		"one entry too many":     {FIFO, func(c *Config) { c.Entries++ }},
		"one byte too many":      {FIFO, func(c *Config) { c.Bytes++ }},
		"a budget that is not":   {FIFO, func(c *Config) { c.Budget = nil }},
	} {
		plans, found := anyPlan(fault.of), false
		for seed := 0; seed < 2000 && !found; seed++ {
			found = runPlan(plans.Example(seed), fault.spoil) != nil
		}
		if !found {
			t.Errorf("nobody finds: %s", name)
		}
	}
}
