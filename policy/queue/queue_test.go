// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func mustNew(t testing.TB, c Config) *Queue {
	t.Helper()
	q, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// A server is functions.
type server struct {
	try     func(Handle, Entry) Answer
	timeout func(Handle, Entry)
}

func (s *server) Try(h Handle, e Entry) Answer { return s.try(h, e) }

func (s *server) Timeout(h Handle, e Entry) {
	if s.timeout != nil {
		s.timeout(h, e)
	}
}

func TestConfigErrors(t *testing.T) {
	two := make([]Class, 2)
	for _, c := range []Config{
		{}, {Entries: 1}, {Entries: MaxEntries + 1, Classes: two}, {Entries: 1, Bytes: -1, Classes: two},
		{Entries: 1, Classes: make([]Class, MaxClasses+1)}, {Entries: 1, Classes: two, Discipline: numDisciplines},
		{Entries: 1, Classes: two, Discipline: Linear}, {Entries: 1, Classes: []Class{{Weight: MaxWeight + 1}}},
		{Entries: 1, Classes: []Class{{Threshold: -1}}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// Two workers' queues share a budget: what one holds the other cannot.
func TestSharedBudget(t *testing.T) {
	shared := &Counter{MaxEntries: 3, MaxBytes: 100}
	c := Config{Entries: 10, Bytes: 1000, Classes: make([]Class, 1), Budget: shared}
	a, b := mustNew(t, c), mustNew(t, c)
	h, _ := a.Push(0, Entry{Bytes: 60}, 0)
	if _, out := b.Push(0, Entry{Bytes: 60}, 0); out != QueueFull {
		t.Errorf("60 more bytes than there are: %v", out)
	}
	if _, out := b.Push(0, Entry{Bytes: 40}, 0); out != Queued {
		t.Errorf("40 bytes: %v", out)
	}
	a.Cancel(h)
	b.Turn(0, &server{try: func(Handle, Entry) Answer { return Sent() }})
	if shared.Entries != 0 || shared.Bytes != 0 {
		t.Errorf("%+v is still held", shared)
	}
}

// Who is offered may leave, push others, take others out, and ask for a turn, all within the offer.
func TestWithinATurn(t *testing.T) {
	q := mustNew(t, Config{Entries: 10, Bytes: 0, Classes: make([]Class, 1)})
	var handles []Handle
	for i := range 5 {
		h, _ := q.Push(0, Entry{ID: uint64(i)}, 0)
		handles = append(handles, h)
	}
	var tried []uint64
	s := &server{}
	s.try = func(h Handle, e Entry) Answer {
		tried = append(tried, e.ID)
		switch e.ID {
		case 0: // leaves by itself, takes the next one with it
			q.Cancel(h)
			q.Cancel(handles[1])
		case 2: // another turn and a new entry
			if q.Turn(0, s) != 0 {
				t.Error("a turn within a turn says to wait")
			}
			q.Push(0, Entry{ID: 9}, 0)
			return Skip(5)
		}
		return Sent()
	}
	if wake := q.Turn(0, s); wake != 0 {
		t.Errorf("somebody was pushed in the turn, and the next one is at %d", wake)
	}
	if want := []uint64{0, 2, 3, 4, 9}; !slices.Equal(tried, want) || q.Len() != 1 {
		t.Errorf("tried %v, want %v; %d are left", tried, want, q.Len())
	}
	if wake := q.Turn(1, s); wake != 5 {
		t.Errorf("who was skipped until 5 is due at %d", wake)
	}
}

// A handle of somebody who has left names nobody, though the place has been given to another.
func TestOldHandles(t *testing.T) {
	q := mustNew(t, Config{Entries: 1, Classes: make([]Class, 1)})
	old, _ := q.Push(0, Entry{}, 0)
	q.Cancel(old)
	now, _ := q.Push(0, Entry{}, 0)
	if q.Cancel(old) || !q.Cancel(now) || q.Cancel(Handle{77, 0}) {
		t.Error("a handle names another entry")
	}
}

// In steady state nothing is allocated, whatever the discipline and however owners are skipped.
func TestAllocations(t *testing.T) {
	for d := range numDisciplines {
		push, turn := steady(t, d, true)
		for range 200 {
			push()
		}
		turn()
		if n := testing.AllocsPerRun(200, func() { push(); turn() }); n != 0 {
			t.Errorf("%v: %v allocations for a push and a turn", d, n)
		}
	}
}

// steady gives a push of one entry and a turn that sends one. With skips, one entry in 16 is refused by a bucket of its own
// until its deadline comes: then some 600 lie in the way.
func steady(t testing.TB, d Discipline, skips bool) (push, turn func()) {
	c := Config{Entries: 1000, Bytes: 1 << 30, Discipline: d, Rate: 1, Classes: []Class{
		{Priority: 2, Weight: 3}, {Priority: 1, Weight: 2, Threshold: time.Second}, {Weight: 1, Threshold: 2 * time.Second},
	}}
	q := mustNew(t, c)
	now, n, left := int64(0), 0, 1
	s := &server{try: func(_ Handle, e Entry) Answer {
		if skips && e.ID%16 == 0 {
			return Skip(now + 1e6)
		}
		if left == 0 {
			return Stop(now + 1e6)
		}
		left--
		return Sent()
	}}
	push = func() {
		n++
		now += 1e6
		q.Push(now, Entry{ID: uint64(n), Class: n % 3, Owner: uint64(n % 7), Bytes: 1000, Deadline: now + 10e9}, 1e6)
	}
	return push, func() { left = 1; q.Turn(now, s) }
}

// A push, and a turn that sends one of 200.
func BenchmarkPushTurn(b *testing.B) {
	for d := range numDisciplines {
		b.Run(d.String(), func(b *testing.B) { benchmarkSteady(b, d, false) })
	}
}

// The same with some 600 entries that wait for buckets of their own.
func BenchmarkPushTurnPastSkipped(b *testing.B) { benchmarkSteady(b, Strict, true) }

func benchmarkSteady(b *testing.B, d Discipline, skips bool) {
	push, turn := steady(b, d, skips)
	for range 200 {
		push()
	}
	b.ReportAllocs()
	for b.Loop() {
		push()
		turn()
	}
}

// A caller that leaves from anywhere in a queue of 1000 with deadlines.
func BenchmarkPushCancel(b *testing.B) {
	q := mustNew(b, Config{Entries: 1001, Bytes: 1 << 30, Classes: make([]Class, 2)})
	handles := make([]Handle, 1000)
	for i := range handles {
		handles[i], _ = q.Push(int64(i), Entry{Class: i % 2, Deadline: int64(1e9 + i*7919%1000)}, 0)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := i * 31 % 1000
		q.Cancel(handles[at])
		handles[at], _ = q.Push(int64(1000+i), Entry{Class: i % 2, Deadline: int64(1e9 + i)}, 0)
	}
}

// Deadlines end in their order however entries came and left: the heap is one after any removal.
func TestDeadlineHeap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	q := mustNew(t, Config{Entries: 500, Classes: make([]Class, 1)})
	var handles []Handle
	for range 20_000 {
		if r.IntN(3) > 0 {
			if h, out := q.Push(0, Entry{Deadline: 1 + r.Int64N(1000)}, 0); out == Queued {
				handles = append(handles, h)
			}
		} else if len(handles) > 0 {
			i := r.IntN(len(handles))
			q.Cancel(handles[i])
			handles = slices.Delete(handles, i, i+1)
		}
		for i := 1; i < len(q.due); i++ {
			if q.earlier(i, (i-1)/2) || int(q.nodes[q.due[i]].due) != i {
				t.Fatalf("%d is before its parent, or does not know its place", i)
			}
		}
	}
}

// An owner that was refused in a low class and then in a higher one is blocked from the higher one down.
func TestBlockedFromTheHighestRefused(t *testing.T) {
	q := mustNew(t, Config{Entries: 9, Classes: make([]Class, 3)})
	for id, class := range []int{2, 0, 1, 0} {
		q.Push(0, Entry{ID: uint64(id), Class: class, Owner: 7}, 0)
	}
	var tried []uint64
	q.Turn(0, &server{try: func(_ Handle, e Entry) Answer {
		tried = append(tried, e.ID)
		return Skip(9)
	}})
	if !slices.Equal(tried, []uint64{0, 1}) {
		t.Errorf("tried %v, want 0 and 1: the others are behind 1", tried)
	}
}

// An arrival without a place may be tried after a turn, if it passes nobody but who waits for other buckets than its own.
func TestMayTry(t *testing.T) {
	for _, row := range []struct {
		what   string
		answer func(Entry) Answer
		class  int
		owner  uint64
		want   bool
	}{
		{"a higher class waits for what all share", func(Entry) Answer { return Stop(9) }, 2, 7, false},
		{"its own does", func(Entry) Answer { return Stop(9) }, 1, 7, false},
		{"a lower one does", func(Entry) Answer { return Stop(9) }, 0, 7, true},
		{"another owner's bucket", func(Entry) Answer { return Skip(9) }, 1, 7, true},
		{"its owner's bucket", func(Entry) Answer { return Skip(9) }, 1, 3, false},
		{"its owner's, for a higher class", func(Entry) Answer { return Skip(9) }, 0, 3, true},
		{"its parent's bucket", func(Entry) Answer { return SkipParent(9) }, 1, 4, false},
		{"nobody's", func(Entry) Answer { return SkipAlone(9) }, 1, 3, true},
		{"its class's part", func(Entry) Answer { return SkipClass(9) }, 1, 7, false},
		{"another class's part", func(Entry) Answer { return SkipClass(9) }, 2, 7, true},
		{"an aged one of a lower class", func(Entry) Answer { return Stop(9) }, 0, 8, false},
	} {
		c := Config{Entries: 1, Bytes: 9, Discipline: Strict, Classes: make([]Class, 3)}
		if row.owner == 8 {
			c.Discipline, c.Classes[1].Threshold = Threshold, 5
		}
		q, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		q.Push(0, Entry{Class: 1, Owner: 3, Parent: 4}, 0)
		q.Turn(5, answering(row.answer))
		if got := q.MayTry(5, row.class, row.owner, row.owner); got != row.want {
			t.Errorf("%s: %v", row.what, got)
		}
	}
}

// answering gives every offer the same answer.
type answering func(Entry) Answer

func (a answering) Try(_ Handle, e Entry) Answer { return a(e) }
func (answering) Timeout(Handle, Entry)          {}
