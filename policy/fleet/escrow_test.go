// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// An escrowWorld is a lender and some borrowers on a bad network. It charges an exact bucket, and counts an exact window.
type escrowWorld struct {
	now    int64
	events eventHeap
	seq    int
	rng    *rand.Rand
	quota  Quota
	loss   float64
	mean   float64

	lender    *Lender
	up        bool
	borrowers []*Borrower
	lives     []uint64
	skews     []float64
	waiting   []map[uint64]int64 // units by call
	mistake   func(w *escrowWorld)

	bucket   float64
	at       int64
	admitted []admitted
	used     int64
	worst    float64 // of the bucket
	window   int64   // most in one
}

func (w *escrowWorld) in(t float64, f func()) {
	w.seq++
	heap.Push(&w.events, event{w.now + int64(t*1e9), w.seq, f})
}

func (w *escrowWorld) local(i int) int64 { return w.now + int64(float64(w.now)*w.skews[i]) }

func (w *escrowWorld) send(f func()) {
	for i := range 2 {
		if i == 1 && w.rng.Float64() > 0.2 {
			return
		}
		if w.rng.Float64() >= w.loss {
			w.in(0.01+w.rng.ExpFloat64()*w.mean, f)
		}
	}
}

func newEscrowWorld(seed uint64, windowed bool) *escrowWorld {
	r := rand.New(rand.NewPCG(seed, 5))
	q := Quota{Limit: 5 + r.Int64N(40), Window: int64(20 * time.Second)}
	q.Burst = 1 + r.Int64N(q.Limit)
	if windowed {
		q.Memory = MemoryOf(q.Window, 0)
	}
	w := &escrowWorld{now: second, at: second, rng: r, quota: q, loss: 0.4 * r.Float64(), mean: r.Float64(), up: true, bucket: float64(q.Burst)}
	w.lender = NewLender(w.now, "k", q, DefaultParams(), true)
	for i := range 1 + r.IntN(6) {
		w.borrowers, w.lives, w.skews = append(w.borrowers, nil), append(w.lives, 0), append(w.skews, 8e-4*(r.Float64()-0.5))
		w.waiting = append(w.waiting, nil)
		w.restart(i)
		w.arrive(i)
		w.poll(i)
	}
	w.in(10+20*r.Float64(), w.crash)
	w.serve()
	return w
}

func (w *escrowWorld) restart(i int) {
	w.lives[i]++
	w.borrowers[i], w.waiting[i] = NewBorrower(fmt.Sprint(i), w.lives[i], "k", DefaultParams()), map[uint64]int64{}
	w.in(60*w.rng.Float64(), func() { w.restart(i) })
}

// crash is rare, for a lender that has been replaced lends nothing for long.
func (w *escrowWorld) crash() {
	w.up = false
	w.in(2*w.rng.Float64(), func() {
		w.up, w.lender = true, NewLender(w.now, "k", w.quota, DefaultParams(), false)
		w.in(60+100*w.rng.Float64(), w.crash)
	})
}

func (w *escrowWorld) arrive(i int) {
	units := 1 + w.rng.Int64N(max(w.quota.Burst/3, 1))
	if call, ok := w.borrowers[i].Want(w.local(i), units, int64(10e9*w.rng.Float64())); ok {
		w.admit(units)
	} else {
		w.waiting[i][call] = units
	}
	w.in(4*w.rng.Float64(), func() { w.arrive(i) })
}

func (w *escrowWorld) poll(i int) {
	if m := w.borrowers[i].Message(w.local(i)); m != nil {
		w.send(func() {
			if w.up {
				w.lender.Hear(w.now, m)
			}
		})
	}
	w.in(0.1, func() { w.poll(i) })
}

func (w *escrowWorld) serve() {
	if w.up {
		for _, loan := range w.lender.Serve(w.now) {
			var i int
			fmt.Sscan(loan.Node, &i)
			w.send(func() {
				for _, call := range w.borrowers[i].Take(w.local(i), &loan.Lent) {
					w.admit(w.waiting[i][call])
				}
			})
		}
		if w.mistake != nil {
			w.mistake(w)
		}
	}
	w.in(0.05, w.serve)
}

func (w *escrowWorld) admit(units int64) {
	rate := float64(w.quota.Limit) / float64(w.quota.Window)
	w.bucket = math.Min(float64(w.quota.Burst), w.bucket+rate*float64(w.now-w.at)) - float64(units)
	w.at, w.worst, w.used = w.now, min(w.worst, w.bucket), w.used+units
	w.admitted = append(w.admitted, admitted{w.now, units})
	var sum int64
	w.admitted, sum = lately(w.admitted, w.now-w.quota.Window)
	w.window = max(w.window, sum)
}

func (w *escrowWorld) run(seconds float64) *escrowWorld {
	end := w.now + int64(seconds*1e9)
	for len(w.events) > 0 && w.events[0].at < end {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.run()
		if w.up && w.lender.level+w.lender.lent > w.quota.Burst {
			w.worst = -1e9
		}
	}
	return w
}

func (w *escrowWorld) broken() bool {
	return w.worst < -1e-6 || w.quota.windowed() && w.window > w.quota.Limit
}

// P19: what is lent and spent is never more than the one bucket, nor than the quota in any window.
func TestEscrow(t *testing.T) {
	used := int64(0)
	for seed := range uint64(60) {
		w := newEscrowWorld(seed, seed%2 == 0).run(300)
		if used += w.used; w.broken() {
			t.Errorf("seed %d: the bucket owes %.3f; %d in a window of %d", seed, -w.worst, w.window, w.quota.Limit)
		}
	}
	t.Logf("%d units used", used)
	if used == 0 {
		t.Error("nothing was ever lent")
	}
}

// Mistakes with loans are seen by what is spent.
func TestEscrowMistakesAreSeen(t *testing.T) {
	struck := map[*Lender]int64{}
	for name, mistake := range map[string]func(w *escrowWorld){
		"what was struck off is credited": func(w *escrowWorld) {
			if d := w.lender.Struck - struck[w.lender]; d > 0 {
				w.lender.level += d
				struck[w.lender] += d
			}
		},
		"loans end early": func(w *escrowWorld) {
			for _, e := range w.lender.ends {
				e.end = min(e.end, w.now+second)
			}
		},
		"tokens are kept beyond their term": func(w *escrowWorld) {
			for i, b := range w.borrowers {
				for k := range b.held {
					b.held[k].until = w.local(i) + second
				}
			}
		},
		"the refill goes on beside what is lent": func(w *escrowWorld) {
			w.lender.level = max(w.lender.level, min(w.quota.Burst, w.lender.level+w.lender.lent))
		},
		"a new lender lends at once": func(w *escrowWorld) {
			if w.lender.closed > 0 {
				w.lender.closed, w.lender.level = 0, max(w.lender.level, w.quota.Burst-w.lender.lent)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(200) {
				w := newEscrowWorld(seed, seed%2 == 0)
				w.mistake = mistake
				if w.run(300).broken() {
					t.Logf("seed %d", seed)
					return
				}
			}
			t.Error("not seen")
		})
	}
}

// A new lender lends nothing that an earlier one may have lent, nor what it would have saved up meanwhile.
func TestNewLenderWaits(t *testing.T) {
	for _, memory := range []int64{0, MemoryOf(10*second, 0)} {
		q, p := plainQuota, DefaultParams()
		q.Memory = memory
		l := NewLender(second, "k", q, p, false)
		closed := second + p.outlast(p.loanTerm())
		if memory > 0 {
			closed += p.outlast(memory)
		}
		ask := func(now int64, id uint64) int {
			l.Hear(now, &Asks{Node: "a", Incarnation: 1, Asks: []Ask{{id, 1, 9 * second}}})
			return len(l.Serve(now))
		}
		if ask(closed-1, 1) != 0 {
			t.Error("a new lender lends what an earlier one may have lent")
		}
		if l.level > 0 && memory == 0 {
			t.Errorf("it has saved up %d", l.level)
		}
		if ask(closed+second, 2) != 1 {
			t.Error("it never lends")
		}
	}
}

// Tokens that come when their term is over are not there: the lender has struck them off, and may have lent them again.
func TestTokensThatComeTooLate(t *testing.T) {
	for _, late := range []bool{false, true} {
		b := NewBorrower("a", 1, "k", DefaultParams())
		call, ok := b.Want(second, 1, 9*second)
		m := b.Message(second)
		if ok || len(m.Asks) != 1 {
			t.Fatalf("%+v", m)
		}
		term := 5 * second
		if late {
			term = 3 * second
		}
		calls := b.Take(5*second, &Lent{Incarnation: 1, Key: "k", Term: term, IDs: []uint64{m.Asks[0].ID}})
		if late == (len(calls) == 1 && calls[0] == call) {
			t.Errorf("late %v: admitted %v", late, calls)
		}
	}
}
