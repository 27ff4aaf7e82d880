// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"container/heap"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// A Clock is virtual time: it runs what is due, in the order of time and, at one time, in the order in which it was asked
// for. It never stands still: what is asked for in the past runs now.
type Clock struct {
	now    int64 // ns
	seq    uint64
	events events
}

// Now is the time in ns; it begins at 0.
func (c *Clock) Now() int64 { return c.now }

// At runs f at the time t, or now if that is past.
func (c *Clock) At(t int64, f func()) {
	c.seq++
	heap.Push(&c.events, event{max(t, c.now), c.seq, f})
}

// After runs f in d from now.
func (c *Clock) After(d time.Duration, f func()) { c.At(c.now+int64(d), f) }

// Every runs f now and then every d, until it says false.
func (c *Clock) Every(d time.Duration, f func() bool) {
	var tick func()
	tick = func() {
		if f() {
			c.After(max(d, 1), tick)
		}
	}
	c.After(0, tick)
}

// Run runs until nothing is due any more, or the time until has come.
func (c *Clock) Run(until int64) {
	for len(c.events) > 0 && c.events[0].at <= until {
		e := heap.Pop(&c.events).(event)
		c.now = e.at
		e.run()
	}
	c.now = max(c.now, until)
}

// Drain runs until nothing is due any more.
func (c *Clock) Drain() {
	for len(c.events) > 0 {
		c.Run(c.events[0].at)
	}
}

type event struct {
	at  int64
	seq uint64
	run func()
}

type events []event

func (h events) Len() int { return len(h) }

func (h events) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *events) Push(x any) { *h = append(*h, x.(event)) }

func (h *events) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return e
}

// Rand is a source of random numbers of its own for each actor of a run, so that one more draw of one actor changes nothing
// for the others.
func Rand(seed uint64, actor string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(actor))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
