// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// A controller whose term is over, because its process was paused, answers nothing that came before or after, and ends.
func TestNothingAfterTheTerm(t *testing.T) {
	var over, pushed atomic.Bool
	var looks atomic.Int64
	c, err := New(Config{
		Store: &memory{records: map[string][]byte{}}, Connected: func() int { return 1 },
		Push:  func(map[string][]byte) { pushed.Store(true) },
		Holds: func() bool { looks.Add(1); return !over.Load() },
	})
	must(t, err)
	spec := worldSpec()
	p := compile(t, spec)
	name, _ := nameOf(p, policy.TierProvider, "p/m", 0, policy.TPM, time.Now())
	report := func(number uint64) *fleet.FromNode {
		return &fleet.FromNode{Node: "n", Incarnation: 1, Number: number, Report: &fleet.Report{
			Node: "n", Incarnation: 1, Number: number, Epoch: c.Epoch(), Holdings: []fleet.Holding{{Key: name.String(), Demand: 1000}},
		}}
	}
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(t.Context()) }()
	must(t, c.SetPolicy(t.Context(), p, spec))
	_, err = c.Report(t.Context(), report(1))
	must(t, err)
	for end := time.Now().Add(5 * time.Second); !pushed.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no grant while the term holds")
		}
	}
	paused := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- c.do(t.Context(), func() { close(paused); time.Sleep(50 * time.Millisecond); over.Store(true) })
	}()
	<-paused // what comes now waits until it goes on
	before := looks.Load()
	late := make(chan error, 1)
	go func() { _, err := c.Report(context.Background(), report(2)); late <- err }()
	must(t, <-done)
	pushed.Store(false)
	if err := <-late; !errors.Is(err, ErrGone) {
		t.Errorf("a report was taken after the term: %v", err)
	}
	<-ended
	if pushed.Load() || looks.Load() == before {
		t.Errorf("pushed %v after the term, looked %d times", pushed.Load(), looks.Load()-before)
	}
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
}
