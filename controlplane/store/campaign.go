// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// A Candidate is somebody who would lead.
type Candidate struct {
	Name  string        // what is led
	Who   string        // for people; a suffix makes each term's unlike any other
	Lease time.Duration // for as long as the leader can be gone before the next one is
	Log   *slog.Logger

	// Lead leads until its context ends. It does nothing for which term has not held when it looked: it may have been paused.
	Lead func(ctx context.Context, term func() Term)
	// Looked is told what came of each look at the store: nil where this one leads, a *HeldError, ErrUnavailable. It may be nil.
	Looked func(error)
}

// Campaign has a candidate lead as often and as long as it can, until ctx ends. All candidates of a store must have one lease.
//
// At most one is in Lead at a time, as far as it does nothing without looking at its term: also where the store has forgotten what
// it answered. One file forgets nothing, and has one process. But a Redis may come back with less than it had, or its place be taken
// by a replica that had not heard of the last leader. That one's term ends a lease after it last asked, at its own clock; and what
// the store answers now was answered later. So whoever begins to lead a store that others share waits for one lease first. The
// clock of the store, and whether the last leader has resigned, do not matter then.
func Campaign(ctx context.Context, s Store, c Candidate) {
	quiet := time.Duration(0)
	if _, shared := s.(Shared); shared {
		quiet = c.Lease + c.Lease/100 // clocks differ
	}
	for ctx.Err() == nil {
		wait := c.Lease / 3
		t, err := s.Lead(ctx, c.Name, c.Who+"#"+rand.Text()[:8], c.Lease)
		c.looked(ctx, err)
		var held *HeldError
		switch {
		case err == nil:
			t = c.hold(ctx, s, t, quiet)
			// Not with ctx, which may be over: whoever is next need not wait for the end of the lease.
			_ = s.Resign(context.WithoutCancel(ctx), t)
		case errors.As(err, &held):
			wait = min(wait, held.For+time.Millisecond)
		}
		sleep(ctx, wait)
	}
}

func (c *Candidate) looked(ctx context.Context, err error) {
	if c.Looked != nil && ctx.Err() == nil {
		c.Looked(err)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// hold runs Lead after a while and renews its term, until either ends.
func (c *Candidate) hold(ctx context.Context, s Store, t Term, quiet time.Duration) Term {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var now atomic.Pointer[Term]
	now.Store(&t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if sleep(ctx, quiet); ctx.Err() != nil {
			return
		}
		c.Log.Info("this control plane leads", "what", c.Name, "epoch", t.Token)
		c.Lead(ctx, func() Term { return *now.Load() })
		c.Log.Info("this control plane leads no more", "what", c.Name, "epoch", t.Token)
	}()
	renew := time.NewTicker(c.Lease / 3)
	defer renew.Stop()
	for {
		over := time.NewTimer(time.Until(now.Load().Until) - c.Lease/6)
		select {
		case <-done:
		case <-ctx.Done():
		case <-over.C:
		case <-renew.C:
			if over.Stop(); c.renew(ctx, s, &now) {
				continue
			}
		}
		over.Stop()
		end()
		<-done
		return *now.Load()
	}
}

// renew renews a term, and says whether it may go on. If the store is away it may, until it is over.
func (c *Candidate) renew(ctx context.Context, s Store, now *atomic.Pointer[Term]) bool {
	t := now.Load()
	// No longer than this term: an answer that comes after it is of no use.
	limit, stop := context.WithDeadline(ctx, t.Until.Add(-c.Lease/6))
	defer stop()
	next, err := s.Lead(limit, t.Name, t.Who, c.Lease)
	c.looked(ctx, err)
	var held *HeldError
	if err == nil && next.Token == t.Token {
		now.Store(&next)
		return true
	}
	return err != nil && !errors.As(err, &held) // or it is another term, or another's
}

// Candidate is who holds it, as that called itself.
func (e *HeldError) Candidate() string {
	who, _, _ := strings.Cut(e.By, "#")
	return who
}
