// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// Config says how a Controller works.
type Config struct {
	Store     Store
	Clock     Clock                             // nil: this machine's
	Push      func(documents map[string][]byte) // sends nodes their documents; it must not wait for them
	Connected func() int                        // how many nodes there are
	Logger    *slog.Logger                      // nil: no log

	// Holds says whether no other controller can have begun. Once it says no, this one ends. It is asked before anything is done, and
	// after the clock was read that it is done by: so a process that was paused in between, for however long, does no more than
	// one whose messages were long on their way. nil: it always holds.
	Holds func() bool
}

// A Controller shares quotas out. Its methods may be called by anybody at any time.
type Controller struct {
	config Config
	core   *core // belongs to Run
	calls  chan func()
	gone   chan struct{} // closed when Run has ended
	failed string        // the last error of the store; belongs to Run
}

// ErrGone says that the controller has ended.
var ErrGone = errors.New("fleet: the controller has ended")

// New makes a controller, whose epoch begins now: none that came before on the same store must work any more.
func New(c Config) (*Controller, error) {
	if c.Clock == nil {
		c.Clock = NewClock()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	k, err := newCore(c.Clock.Now(), c.Clock.Wall(), c.Store, c.Logger, c.Connected)
	if err != nil {
		return nil, err
	}
	return &Controller{config: c, core: k, calls: make(chan func(), 256), gone: make(chan struct{})}, nil
}

// Epoch is the controller's.
func (c *Controller) Epoch() uint64 { return c.core.epoch }

// Run works until ctx ends, or until it must not.
func (c *Controller) Run(ctx context.Context) {
	defer close(c.gone)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-c.calls:
			if !c.look() {
				return
			}
			f()
		case <-timer.C:
		}
		if !c.drain() || !c.look() {
			return
		}
		c.tick()
		timer.Reset(max(time.Duration(c.core.next()-c.config.Clock.Now()), time.Millisecond))
	}
}

// look reads the clock, and says whether anything may be done by it.
func (c *Controller) look() bool {
	c.core.at(c.config.Clock.Now(), c.config.Clock.Wall())
	return c.config.Holds == nil || c.config.Holds()
}

// drain takes all that has come by now, so that one look at the quotas does for all of it. false: it must not.
func (c *Controller) drain() bool {
	for range cap(c.calls) {
		select {
		case f := <-c.calls:
			if !c.look() {
				return false
			}
			f()
		default:
			return true
		}
	}
	return true
}

func (c *Controller) tick() {
	documents, err := c.core.tick()
	c.note(err)
	if len(documents) > 0 {
		c.config.Push(documents)
	}
}

// note logs that the store fails, once, and that it works again.
func (c *Controller) note(err error) {
	now := ""
	if err != nil {
		now = err.Error()
	}
	switch {
	case now == c.failed:
	case now != "":
		c.config.Logger.Error("the store fails: nothing more is given of stocks until it works again", "error", now)
	default:
		c.config.Logger.Info("the store works again")
	}
	c.failed = now
}

// do has Run do something, and waits for it.
func (c *Controller) do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	call := func() {
		f()
		close(done)
	}
	select {
	case c.calls <- call:
	case <-c.gone:
		return ErrGone
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-c.gone:
		return ErrGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SetPolicy puts a policy in force.
func (c *Controller) SetPolicy(ctx context.Context, p *policy.Policy, spec *policy.Spec) error {
	return c.do(ctx, func() { c.core.setPolicy(p, spec) })
}

// Report takes in a message. hello: the node has to be told of this controller.
func (c *Controller) Report(ctx context.Context, m *fleet.FromNode) (hello bool, err error) {
	err = c.do(ctx, func() { hello = !c.core.report(m) })
	return hello, err
}

// Status gives the state of everything.
func (c *Controller) Status(ctx context.Context) (s Status, err error) {
	err = c.do(ctx, func() { s = c.core.status(0); s.Store = c.failed })
	return s, err
}

// Busiest is Status with no more than so many quotas: the busiest.
func (c *Controller) Busiest(ctx context.Context, most int) (s Status, err error) {
	err = c.do(ctx, func() { s = c.core.status(most); s.Store = c.failed })
	return s, err
}

// Find gives the quotas of one key of a tier, and why calls of that key were refused.
func (c *Controller) Find(ctx context.Context, t policy.Tier, key policy.Key) (found []Quota, denied []Denied, err error) {
	err = c.do(ctx, func() { found, denied = c.core.find(t, key) })
	return found, denied, err
}
